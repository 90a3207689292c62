from typing import Any

import torch
from torch.optim.lr_scheduler import StepLR

from edt_hvd.wmla import Callback
from edt_hvd.wmla.hooks import Hooks


class Scheduling(Callback):
    """Does not call its base's constructor."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_train_begin(self) -> None:
        self.scheduler = StepLR(self.params["optimizer"], 1, 0.5)
        self.note = {"best": 0.25}
        self.handle = object()

    def on_epoch_begin(self, epoch: int) -> None:
        self.seen.append(epoch)

    def on_epoch_end(self, epoch):  # type: ignore[no-untyped-def,override]
        self.scheduler.step()


class Saving:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_epoch_end(self, epoch: int, save_model: bool = False) -> None:
        self.calls.append((epoch, save_model))


class SavingByName:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_epoch_end(self, epoch: int, **named: Any) -> None:
        self.calls.append((epoch, named))


def made(*callbacks: Any) -> tuple[Hooks, torch.optim.Optimizer]:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return Hooks(callbacks, model, optimizer, 3), optimizer


def test_callbacks_are_given_what_is_trained() -> None:
    callback = Scheduling()
    _, optimizer = made(callback)
    assert callback.params == {"optimizer": optimizer, "epochs": 3}
    assert isinstance(callback.model, torch.nn.Linear)
    assert Callback.params == {}
    assert Callback.model is None


def test_save_model_is_passed_to_those_that_take_it() -> None:
    saving, by_name, scheduling = Saving(), SavingByName(), Scheduling()
    hooks, optimizer = made(saving, by_name, scheduling)
    hooks.train_begin()
    optimizer.step()
    hooks.epoch_begin(0)
    hooks.epoch_end(0, save_model=True)
    hooks.train_end()
    assert saving.calls == [(0, True)]
    assert by_name.calls == [(0, {"save_model": True})]
    assert scheduling.seen == [0]
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_one_that_joins_goes_on_with_the_callbacks_of_the_others() -> None:
    before, after = Scheduling(), Scheduling()
    hooks, optimizer = made(before)
    hooks.train_begin()
    for epoch in range(2):
        hooks.epoch_begin(epoch)
        optimizer.step()
        hooks.epoch_end(epoch, save_model=False)
    joined, _ = made(after)
    joined.train_begin()
    handle = after.handle
    joined.load_state_dict(hooks.state_dict())
    assert after.seen == [0, 1]
    assert after.note == {"best": 0.25}
    assert after.scheduler.last_epoch == 2
    assert after.handle is handle
