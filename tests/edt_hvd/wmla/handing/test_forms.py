import threading
import weakref
from argparse import Namespace
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from edt_hvd.wmla.handing import forms
from edt_hvd.wmla.handing.forms import Forms, attributes, layers


class Own:
    def __init__(self, rate: float) -> None:
        self.rate = rate


class Telling(dict[str, Any]):
    """As configurations are written; its methods are not those of a dictionary."""

    def items(self) -> Any:
        raise AssertionError("nobody asks")

    __eq__ = __hash__ = __len__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class Slotted:
    rate: float


class Bare(torch.nn.Module):
    def __init__(self) -> None:
        pass


def known(value: Any) -> Any:
    return Forms(lambda kind: kind in (Own, Telling, Slotted)).of(value)


@pytest.mark.parametrize(
    "one, other",
    [
        (1, True),
        (1, 1.0),
        ([1], (1,)),
        ({"a": 1}, {"a": 2}),
        ({1}, {2}),
        (Path("a"), "a"),
        (SimpleNamespace(a=1), SimpleNamespace(a=2)),
        (Namespace(a=[1]), Namespace(a=[2])),
        (Own(0.1), Own(0.2)),
        (Slotted(0.1), Slotted(0.2)),
        (Telling(rate=0.1), Telling(rate=0.2)),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        (deque([1]), deque([2])),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), np.array([0.0, 1.0])),
        ([int], [float]),
        (threading.Lock(), threading.Lock()),
    ],
)
def test_what_differs_has_another_form(one: Any, other: Any) -> None:
    assert known(one) != known(other)
    assert known(one) == known(one)
    assert hash(known(one)) == hash(known(one))


def frozen(layer: torch.nn.Module) -> None:
    layer.get_parameter("0.weight").requires_grad_(False)


CHANGES: dict[str, Callable[[torch.nn.Module], object]] = {
    "weights": lambda net: net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()}),
    "frozen": frozen,
    "mode": lambda net: net.eval(),
    "layer": lambda net: net.add_module("0", torch.nn.Linear(2, 2)),
    "more": lambda net: net.add_module("9", torch.nn.Linear(2, 2)),
    "setting": lambda net: setattr(net.get_submodule("1"), "p", 0.25),
    "buffer": lambda net: net.get_buffer("2.running_mean").add_(1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_of_a_torch_module_are_seen(change: Callable[[torch.nn.Module], object]) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(2))
    before = known([net])
    net.eval()(torch.ones(1, 2))
    net.train()
    assert known([net]) == before
    change(net)
    assert known([net]) != before


def test_a_tensor_s_changes_are_seen() -> None:
    tensor = torch.zeros(2)
    before = known({"a": tensor})
    assert known({"a": tensor}) == before
    tensor[0] = 1
    assert known({"a": tensor}) != before
    with torch.inference_mode():
        assert known(inferred := torch.zeros(1)) == known(inferred)


def test_what_one_cannot_see_into_is_known_by_its_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    large = np.zeros(2**20 + 1, np.uint8)
    for value in (endless, deep, object(), [threading.Lock()], np.array([object()]), large, Bare()):
        assert known(value) == known(value)
    endless.append(1)
    assert known([large]) != known([large.copy()])
    monkeypatch.setattr(forms, "LIMIT", 10)
    many = [0] * 10
    before = known(many)
    many.append(1)
    assert known(many) == before


class Lazy:
    __slots__ = ("loaded",)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody asks for {name}")

    __class__ = property(lambda self: self.loaded)  # type: ignore[assignment]


class Meta(type):
    def __eq__(cls, other: object) -> bool:
        raise AssertionError("nobody compares")

    __hash__ = None  # type: ignore[assignment]


class Compared(metaclass=Meta):
    rate = 1


def test_objects_are_not_asked_and_may_have_anything() -> None:
    forms = Forms(lambda kind: issubclass(kind, Lazy | Compared))
    odd = Compared()
    vars(odd).update({0: "cat", "rate": 1})  # type: ignore[dict-item]
    for value in (Lazy(), [odd], 10**5000, torch.nn.LazyLinear(3), torch.nn.UninitializedParameter()):
        assert forms.of(value) == forms.of(value)
    before = forms.of([odd])
    vars(odd)["rate"] = 2
    assert forms.of([odd]) != before
    assert attributes(odd) == {"rate": 2}


def test_forms_keep_no_objects_that_can_be_kept_otherwise() -> None:
    lock = threading.Lock()
    before, gone = known([lock]), weakref.ref(lock)
    assert known([lock]) == before
    del lock
    assert gone() is None
    assert known([threading.Lock()]) != before
    assert known([None]) != before


def test_it_is_told_how_much_was_looked_at() -> None:
    forms = Forms(lambda _: False)
    forms.of([1, 2, [3]])
    assert forms.seen == 5


def test_every_layer_comes_once() -> None:
    inner = torch.nn.Linear(1, 1)
    net = torch.nn.Sequential(inner, torch.nn.Sequential(inner, torch.nn.ReLU()))
    net.register_module("none", None)
    assert [id(layer) for layer in layers(net)] == [id(each) for each in (net, inner, net[1], net[1][1])]
