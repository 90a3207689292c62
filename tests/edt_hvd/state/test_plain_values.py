"""Plain values that a script uses by names of its own stay the same objects."""

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.state.snapshot import copied
from states import take_over, tree_of

pytestmark = pytest.mark.usefixtures("alone")


@dataclass
class Stopper:
    best: float = 9.0
    seen: list[float] = field(default_factory=list)


class History(list[int]):
    best = 0


VALUES: list[tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda: [1], lambda v: v.append(2), list),
    (lambda: {"a": 1}, lambda v: v.update(b=2), dict),
    (lambda: Counter("a"), lambda v: v.update("b"), dict),
    (lambda: {1}, lambda v: v.add(2), set),
    (lambda: deque([1], maxlen=2), lambda v: v.append(2), list),
    (lambda: np.zeros(2), lambda v: np.add(v, 1, out=v), np.ndarray.tolist),
    (lambda: torch.zeros(2), lambda v: v.add_(1), torch.Tensor.tolist),
    (lambda: nn.Parameter(torch.zeros(2)), lambda v: v.data.add_(1), torch.Tensor.tolist),
    (Stopper, lambda v: (setattr(v, "best", 1.0), v.seen.append(1.0)), lambda v: (v.best, list(v.seen))),
    (History, lambda v: (v.append(1), setattr(v, "best", 1)), lambda v: (list(v), v.best)),
    (lambda: random.Random(0), lambda v: v.random(), lambda v: v.getstate()),
    (lambda: np.random.default_rng(0), lambda v: v.random(), lambda v: str(v.bit_generator.state)),
    (torch.Generator, lambda v: v.manual_seed(9), lambda v: v.get_state().tolist()),
]


@pytest.mark.parametrize("make, change, read", VALUES)
def test_an_object_stays_the_same_one_in_newcomers_and_after_a_rollback(
    make: Callable[[], Any], change: Callable[[Any], Any], read: Callable[[Any], Any]
) -> None:
    own, other = make(), make()
    state, newcomer = edt_hvd.TorchState(value=own), edt_hvd.TorchState(value=other)
    state.sync()
    newcomer.sync()
    change(own)
    state.commit()
    wanted = copied(read(own))
    take_over(newcomer, copied(tree_of(state)))
    assert newcomer.value is other
    assert read(other) == wanted
    change(own)
    change(own)
    state.value = make()
    state.restore()
    assert state.value is own
    assert read(own) == wanted


@pytest.mark.parametrize(
    "value, said",
    [
        ([nn.Linear(1, 1)], r"state\.value\[0\] is a Linear"),
        ({"all": (torch.optim.SGD([torch.zeros(1)]),)}, r"state\.value\['all'\]\[0\] is a SGD"),
        ([torch.zeros(1, requires_grad=True)], r"state\.value\[0\] is a Tensor"),
        (Stopper(seen=nn.Linear(1, 1)), r"state\.value\.seen is a Linear"),  # type: ignore[arg-type]
    ],
)
def test_what_is_trained_inside_a_plain_value_is_refused(value: Any, said: str) -> None:
    with pytest.raises(edt_hvd.StateError, match=rf"{said}, inside a plain value: .* nn\.ModuleList"):
        edt_hvd.TorchState(value=value)
