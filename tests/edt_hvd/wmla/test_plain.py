import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edt_hvd.wmla import plain
from edt_hvd.wmla.plain import NotPlainError, form, put


class Own:
    def __init__(self, rate: float) -> None:
        self.rate = rate


def known(value: Any) -> Any:
    return form(value, lambda kind: kind is Own)


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
        (Own(0.1), Own(0.2)),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), np.array([0.0, 1.0])),
    ],
)
def test_what_differs_has_another_form(one: Any, other: Any) -> None:
    assert known(one) != known(other)
    assert known(one) == known(one)


def test_what_cannot_be_compared_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    endless: list[Any] = []
    endless.append(endless)
    monkeypatch.setattr(plain, "LIMIT", 10)
    for value in (endless, [0] * 10, object(), [threading.Lock()], np.array([object()])):
        with pytest.raises(NotPlainError):
            known(value)


@pytest.mark.parametrize(
    "before, after", [([1], [2, 3]), ({"a": 1}, {"b": 2}), ({1}, {2}), (Own(0.1), Own(0.2))]
)
def test_an_object_of_the_same_kind_is_changed_in_place(before: Any, after: Any) -> None:
    owner = SimpleNamespace(value=before)
    put(owner, "value", after)
    assert owner.value is before
    assert known(before) == known(after)


def test_anything_else_takes_its_place() -> None:
    owner = SimpleNamespace(value=[1])
    put(owner, "value", 2)
    assert owner.value == 2
    put(owner, "added", (3,))
    assert owner.added == (3,)
