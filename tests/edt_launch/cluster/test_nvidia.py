import pytest

from edt_launch.cluster.nvidia import visible


@pytest.mark.parametrize(
    "variable, expected",
    [
        (None, ("0", "1", "2")),
        ("", ()),
        ("2,0", ("2", "0")),
        ("0,7,1", ("0",)),
        ("GPU-$(x)", ()),
    ],
)
def test_the_variable_restricts_the_gpus(variable: str | None, expected: tuple[str, ...]) -> None:
    assert visible(["0", "1", "2"], variable) == expected
