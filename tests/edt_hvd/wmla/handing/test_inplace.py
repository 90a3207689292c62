import copy
from argparse import Namespace
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from edt_hvd.wmla.handing.forms import Forms
from edt_hvd.wmla.handing.inplace import renew


class Own:
    def __init__(self, **attributes: float) -> None:
        vars(self).update(attributes)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} is frozen")


class Named(dict[str, Any]):
    def __setitem__(self, name: str, value: Any) -> None:
        raise KeyError(f"{name} is frozen")


@dataclass(slots=True)
class Slotted:
    rate: float


def known(value: Any) -> Any:
    return Forms(lambda kind: kind in (Own, Slotted, Named)).of(value)


def with_attribute(value: Any) -> Any:
    value.more = 1
    return value


@pytest.mark.parametrize(
    "present, value",
    [
        ([1], [2, 3]),
        ({"a": 1}, {"b": 2}),
        ({1}, {2}),
        (deque([1]), deque([2, 3])),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        (Counter("ab"), Counter("b")),
        (Namespace(a=1), Namespace(b=2)),
        (SimpleNamespace(a=1, b=1), SimpleNamespace(a=2)),
        (Own(rate=0.1), Own(rate=0.2)),
        (Own(rate=0.1), Own()),
        (Slotted(0.1), Slotted(0.2)),
        (Named(a=1), with_attribute(Named(a=2))),
        (np.zeros(2), np.ones(2)),
    ],
)
def test_an_object_is_made_like_another_one(present: Any, value: Any) -> None:
    assert renew(present, value)
    assert known(present) == known(value)


@pytest.mark.parametrize(
    "present, value", [([1], (1,)), (1, 2), ((1,), (2,)), (np.zeros(2), np.zeros(3)), (None, [1])]
)
def test_what_cannot_be_changed_stays(present: Any, value: Any) -> None:
    before = copy.deepcopy(present)
    assert not renew(present, value)
    assert known(present) == known(before)


def test_an_array_that_must_not_be_written_stays() -> None:
    present = np.zeros(2)
    present.flags.writeable = False
    assert not renew(present, np.ones(2))


def test_a_tensor_has_the_other_s_values_and_type() -> None:
    present, value = torch.zeros(2), torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    assert not renew(present, value)
    assert renew(present, value.data)
    assert present.dtype is torch.float64
    assert present.tolist() == [1, 1]


def net() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Dropout(0.5))


def test_those_who_have_a_layer_see_its_new_weights() -> None:
    present, value = net(), net().eval()
    layer = present[0]
    value[1].p = 0.25
    value[0].weight.requires_grad_(False)
    assert renew(present, value)
    assert present[0] is layer
    assert torch.equal(layer.weight, value[0].weight)
    assert not layer.weight.requires_grad
    assert (present.training, present[1].p) == (False, 0.25)


@pytest.mark.parametrize("layer", [torch.nn.Linear(1, 2, bias=False), torch.nn.Identity()])
def test_a_torch_module_may_have_other_layers(layer: torch.nn.Module) -> None:
    present, value = net(), net()
    value[0] = layer
    assert renew(present, value)
    assert present[0] is layer
