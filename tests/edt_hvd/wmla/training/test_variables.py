"""Variables that hooks change, as executors that join get them: here, two copies of an own module."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import edt_hvd
from edt_hvd.wmla.training import variables
from edt_hvd.wmla.training.hooks import Hooks

PROGRAM = """
import threading

factor, steps, lock = 1.0, {"count": 0, "log": []}, threading.Lock()
untouched = [1]


class Settings:
    rate = 0.5


class Loss:
    def __init__(self):
        self.weight, self.steps = 1.0, steps


def make():
    level = 0

    def raise_level():
        nonlocal level
        level += 1
        return level

    return raise_level


raise_level = make()


class Counting:
    def __init__(self, loss):
        self.loss, self.steps = loss, steps

    def on_epoch_begin(self, epoch):
        global factor
        factor *= 0.5
        self.steps["count"] += 1
        steps["log"].append(factor)
        Settings.rate += 1
        self.loss.weight *= 3
        raise_level()
        make.calls = epoch
"""

Made = Callable[[], tuple[ModuleType, Any, Hooks]]


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Makes the program of another executor, whose module takes the place of the one before."""
    file = tmp_path / "own_program.py"
    file.write_text(PROGRAM)
    monkeypatch.setattr(variables, "is_own", lambda module: module.__name__ == "own_program")

    def made() -> tuple[ModuleType, Any, Hooks]:
        spec = importlib.util.spec_from_file_location("own_program", file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules["own_program"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        model, loss = torch.nn.Linear(2, 2), module.Loss()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        return module, loss, Hooks([module.Counting(loss)], model, optimizer, 3, [loss])

    yield made
    sys.modules.pop("own_program", None)


def picture(module: ModuleType, loss: Any) -> tuple[Any, ...]:
    level = module.raise_level.__closure__[0].cell_contents
    calls = vars(module.make).get("calls")
    return module.factor, module.steps, module.Settings.rate, loss.weight, level, calls


def test_executors_that_join_get_what_hooks_have_changed(executor: Made) -> None:
    module, loss, hooks = executor()
    hooks.train_begin()
    for epoch in (0, 1):
        hooks.epoch_begin(epoch)
    state, wanted = hooks.state_dict(), picture(module, loss)
    assert wanted == (0.25, {"count": 2, "log": [0.5, 0.25]}, 2.5, 9.0, 2, 1)
    assert b"untouched" not in state["pickled"]
    other, other_loss, joining = executor()
    steps = other.steps
    joining.train_begin()
    joining.load_state_dict(state)
    assert picture(other, other_loss) == wanted
    callback = joining._callbacks[0]
    assert other.steps is steps is other_loss.steps is callback.steps, "what is shared stays shared"
    assert callback.loss is other_loss
    joining.epoch_begin(2)
    assert picture(other, other_loss)[:2] == (0.125, {"count": 3, "log": [0.5, 0.25, 0.125]})
    joining.load_state_dict(state)
    assert picture(other, other_loss) == wanted, "it goes back after a loss"


def test_what_was_changed_for_the_first_time_is_taken_back_where_that_is_possible(executor: Made) -> None:
    module, _, hooks = executor()
    hooks.train_begin()
    state = hooks.state_dict()
    module.Counting.on_epoch_begin = lambda self, epoch: setattr(module, "factor", 7.0)
    hooks.epoch_begin(0)
    hooks.load_state_dict(state)
    assert module.factor == 1.0
    module.Counting.on_epoch_begin = lambda self, epoch: module.untouched.append(2)
    hooks.epoch_begin(0)
    with pytest.raises(edt_hvd.StateError, match=r"own_program\.untouched was changed in place"):
        hooks.load_state_dict(state)
