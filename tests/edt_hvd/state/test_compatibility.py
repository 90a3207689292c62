"""Whether a saved state fits."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from edt_hvd.errors import StateError
from edt_hvd.state.compatibility import check_contents, check_coverage, misfits
from edt_hvd.state.state_dicts import full_state

MODEL = nn.Linear(2, 3)


@pytest.mark.parametrize(
    "saved",
    [
        {"model": MODEL.state_dict(), "epoch": 1},
        {"model": MODEL.state_dict() | {"cache": torch.zeros(1)}, "epoch": 1, "model.trainable": {}},
    ],
)
def test_what_fits(saved: dict[str, Any]) -> None:
    saved["model"].pop("cache", None)
    assert not misfits({"model": MODEL, "epoch": 0}, saved)


@pytest.mark.parametrize(
    "saved, said",
    [
        ({"model": MODEL.state_dict()}, "it has no 'epoch'"),
        ({"model": MODEL.state_dict(), "epoch": 1, "ema": 2}, "its 'ema' is not in this state"),
        ({"model": 3, "epoch": 1}, "its 'model' is a int, here it is a module"),
        (
            {"model": {"weight": torch.zeros(2, 3), "bias": torch.zeros(3)}, "epoch": 1},
            r"its model.weight is float32\[2, 3\], here it is float32\[3, 2\]",
        ),
        (
            {"model": {"weight": torch.zeros(3, 2).half(), "bias": torch.zeros(3)}, "epoch": 1},
            r"its model.weight is float16\[3, 2\], here it is float32\[3, 2\]",
        ),
        ({"model": {"weight": torch.zeros(3, 2)}, "epoch": 1}, "its model.bias is missing, here"),
        (
            {"model": MODEL.state_dict() | {"scale": torch.zeros(1)}, "epoch": 1},
            r"its model.scale is float32\[1\], here it is missing",
        ),
    ],
)
def test_what_does_not_is_named(saved: dict[str, Any], said: str) -> None:
    assert re.search(said, misfits({"model": MODEL, "epoch": 0}, saved))


def cached(**sizes: int) -> nn.Module:
    module = nn.Linear(2, 3)
    for name, size in sizes.items():
        module.register_buffer(name, torch.zeros(size), persistent=False)
    return module


@pytest.mark.parametrize("sizes", [{}, {"cache": 4}, {"cache": 5}, {"mask": 1}])
def test_buffers_outside_the_state_dict_may_be_made_later_or_larger(sizes: dict[str, int]) -> None:
    there = cached(cache=4)
    assert not misfits({"model": cached(**sizes)}, {"model": full_state(there), "model.caches": {}})


def test_checkpoints_that_have_them_among_the_others_fit() -> None:
    saved = {"model": full_state(cached()) | {"cache": torch.zeros(4)}}
    assert not misfits({"model": cached(cache=5)}, saved)


class Adapter(nn.Module):
    """Its own state has the head alone, as those of programs that save what they adapt."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 1)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return {k: v for k, v in super().state_dict(*args, **kwargs).items() if "head" in k}


def test_what_the_optimizers_train_has_to_be_in_the_state() -> None:
    model, loss = Adapter(), nn.Linear(1, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *loss.parameters()], lr=0.1)
    with pytest.raises(
        StateError, match=r"model\.body\.weight; model\.body\.bias; parameter 4 of group 0 of"
    ):
        check_coverage({"model": model, "optimizer": optimizer})
    model.body.requires_grad_(False)
    check_coverage({"model": model, "loss": loss, "optimizer": optimizer})


def test_a_plain_value_may_not_refer_to_another() -> None:
    history = [0.5]
    for holder in ({"of": [history]}, (1, history)):
        with pytest.raises(
            StateError, match=r"state\.stopper.* is state\.history: after a resize they would be"
        ):
            check_contents({"history": history, "stopper": holder})
    check_contents({"history": history, "stopper": {"of": [list(history)]}, "same": 1, "number": 1})
