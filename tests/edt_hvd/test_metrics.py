import pytest
import torch

import edt_hvd

pytestmark = pytest.mark.usefixtures("alone")


def test_the_structure_is_kept() -> None:
    means = edt_hvd.average({"b": 2, "a": torch.tensor([1.0, 3.0]), "c": torch.tensor([1, 2])}, weight=7)
    assert list(means) == ["b", "a", "c"]
    assert means["b"] == 2.0
    assert torch.equal(means["a"], torch.tensor([1.0, 3.0]))
    assert means["c"].dtype == torch.float32
    assert edt_hvd.average(0.25) == 0.25


@pytest.mark.parametrize("weight", [-1.0, 0.0])
def test_impossible_weights_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        edt_hvd.average(1.0, weight=weight)


def test_other_things_than_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="metric 'name' is a str"):
        edt_hvd.average({"name": "digits"})  # type: ignore[dict-item]
