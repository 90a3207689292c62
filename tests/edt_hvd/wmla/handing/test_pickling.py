import threading
from types import ModuleType
from typing import Any

import pytest
import torch

from edt_hvd.wmla.handing.pickling import at, dumps, loads


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = ModuleType("beside")
    exec("class Held:\n    inner = {}\ndef scaled(x): return 2 * x\nlock = held = None", vars(found))
    monkeypatch.setitem(__import__("sys").modules, "beside", found)
    return found


def test_what_has_a_place_is_what_is_there(module: Any) -> None:
    module.lock, module.held = threading.Lock(), module.Held()
    places = {id(module.lock): ("beside", ("lock",)), id(module.Held.inner): ("beside", ("Held", "inner"))}
    lock, inner, again = loads(dumps([module.lock, module.Held.inner, module.Held.inner], places))
    assert lock is module.lock
    assert inner is again is module.Held.inner


def test_a_value_is_no_place_of_itself(module: Any) -> None:
    module.held = {"k": 1}
    copied = loads(dumps(module.held, {id(module.held): ("beside", ("held",))}))
    assert copied == module.held
    assert copied is not module.held


def test_what_is_not_in_its_place_is_named(module: Any) -> None:
    content = dumps([module.Held.inner], {id(module.Held.inner): ("beside", ("Held", "inner"))})
    del module.Held.inner
    with pytest.raises(LookupError, match=r"beside\.Held\.inner is not there: no inner"):
        loads(content)
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        at(("nowhere", ("at_all",)))


def test_a_function_that_has_another_ones_name_goes_itself(module: Any) -> None:
    def wrapped(x: int) -> int:
        return 3 * x

    wrapped.__module__, wrapped.__qualname__, wrapped.__name__ = "beside", "scaled", "scaled"
    module.scaled, first = wrapped, module.scaled
    content = dumps(wrapped, {}, own="beside")
    module.scaled = first
    assert loads(content)(1) == 3
    assert loads(dumps(first, {})) is first


def test_functions_may_name_what_only_looks_like_a_module() -> None:
    def exact() -> object:
        return torch.backends.cudnn

    assert loads(dumps(exact, {}))() is torch.backends.cudnn
    assert loads(dumps(torch.ops, {})) is torch.ops
