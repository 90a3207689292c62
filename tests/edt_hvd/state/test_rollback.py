"""Which copy a rollback goes back to."""

import gc
import weakref

import pytest
import torch
from torch import nn

from edt_hvd.state.rollback import Rollback

pytestmark = pytest.mark.usefixtures("alone")


def values() -> dict[str, object]:
    model = nn.Linear(1, 1)
    return {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=1.0), "epoch": 0}


def test_a_commit_without_a_step_after_it_needs_no_snapshot() -> None:
    rollback, found = Rollback(), values()
    assert rollback.last_commit(found) is None
    rollback.take_point(found, is_full_copy=False)
    tree = rollback.last_commit(found | {"epoch": 5})
    assert tree is not None
    assert tree["epoch"] == 0


def test_after_a_step_only_a_snapshot_helps_until_the_next_commit() -> None:
    rollback, found = Rollback(), values()
    rollback.take_point(found, is_full_copy=False)
    rollback.step_hook()()
    assert rollback.last_commit(found) is None
    rollback.note_commit(found)
    rollback.advance(found | {"epoch": 5})
    tree = rollback.last_commit(found)
    assert tree is not None
    assert tree["epoch"] == 5


def test_the_hook_keeps_nothing_alive() -> None:
    rollback = Rollback()
    hook, reference = rollback.step_hook(), weakref.ref(rollback)
    gc.disable()
    try:
        del rollback
        assert reference() is None
    finally:
        gc.enable()
    hook()
