import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.submission import catalogue
from edt_launch.adapters.wmla.submission.args import ArgumentsError


def test_frameworks_are_known_by_their_names() -> None:
    assert [catalogue.named(name) for name in ("edtPyTorch", "PyTorch", "distPyTorch")] == list(Framework)


@pytest.mark.parametrize(
    "name, said",
    [
        ("", "--exec-start is missing"),
        ("pytorch", "there are only edtPyTorch, PyTorch, distPyTorch"),
        ("edtKeras", "only PyTorch programs run here"),
        ("edtTensorflow", "only PyTorch programs run here"),
        ("distTensorFlow", "only PyTorch programs run here"),
    ],
)
def test_others_are_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(ArgumentsError, match=said):
        catalogue.named(name)


def test_each_generation_is_told_what_it_knows() -> None:
    for framework in Framework:
        old, new = catalogue.classic(framework), catalogue.modern(framework, 4)
        assert old["description"] == ""
        assert all(isinstance(line, str) for line in old["desc"])
        assert set(old) < set(new)
    assert catalogue.modern(Framework.SINGLE, 4)["maxWorkers"] == 1
    assert catalogue.modern(Framework.ELASTIC, 4)["maxWorkers"] == 4
    assert catalogue.app_name(None) == "EDT"
