"""The state when a world is entered: brought to newcomers, read from a checkpoint, protected."""

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.state.checkpoint import checkpoints
from edt_hvd.state.snapshot import copied
from states import assert_same, change_values, exact_step, history, make_state, picture, train_step, tree_of

pytestmark = pytest.mark.usefixtures("alone")


def test_a_scaler_works_on_a_worker_that_has_scaled_no_loss() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    edt_hvd.TorchState(model=nn.ParameterList([weight]), optimizer=optimizer, scaler=scaler).sync()
    weight.grad = torch.full((1,), 8.0)
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == -2.0


class Transfer:
    """Stands in for the transfer between workers: this one receives a tree, as rank 1 of 2."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tree: dict[str, Any]) -> None:
        monkeypatch.setattr(edt_hvd.state.torch_state.hvd, "size", lambda: 2)
        monkeypatch.setattr(edt_hvd.state.torch_state.hvd, "rank", lambda: 1)
        monkeypatch.setattr(edt_hvd.state.torch_state, "broadcast_state", lambda own, progress, holds: tree)


def test_a_checkpoint_that_does_not_fit_ends_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    state = edt_hvd.TorchState(epoch=0)
    Transfer(monkeypatch, {"epoch": 0, "progress": 0, "refusal": "it does not fit", "exposure": (None, None)})
    with pytest.raises(edt_hvd.StateError, match="it does not fit"):
        state.sync()


def test_a_first_sync_that_failed_is_tried_again_with_the_same_checkpoints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkpointed(monkeypatch, tmp_path).finish()
    monkeypatch.setattr(checkpoints, "_serial", itertools.count(1))
    state = edt_hvd.TorchState(epoch=0)
    for _ in range(2):  # does not fit
        with pytest.raises(edt_hvd.StateError, match="step-00000000"):
            state.sync()


def test_what_a_newcomer_has_received_is_its_first_full_copy() -> None:
    old = make_state()
    train_step(old)
    old.commit()
    old.save()
    assert old._rollback.snapshots.last is not None
    newcomer = make_state()
    with pytest.MonkeyPatch.context() as patch:
        Transfer(patch, copied(tree_of(old)) | {"progress": 1, "refusal": None, "exposure": (True, None)})
        newcomer.sync()
    before = picture(newcomer)
    train_step(newcomer)  # a worker was lost before the commit
    newcomer.restore()
    assert newcomer.progress == 1
    assert_same(picture(newcomer), before)


def checkpointed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> edt_hvd.TorchState:
    """A state that writes a checkpoint at every commit that the last write allows."""
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(folder))
    monkeypatch.setenv("EDT_CHECKPOINT_INTERVAL", "0")
    monkeypatch.setattr(checkpoints, "_serial", itertools.count(1))
    return make_state()


@pytest.mark.filterwarnings("ignore:optimizer.step.. was not called")
def test_training_goes_on_from_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = checkpointed(monkeypatch, tmp_path)
    for _ in range(3):
        exact_step(old, 1.0)
        old.optimizer.step()
        change_values(old)
        old.commit()
    old.finish()
    drawn = torch.rand(2), random.random(), np.random.random()
    torch.manual_seed(99)
    new = checkpointed(monkeypatch, tmp_path)
    assert (new.progress, new.epoch, new.history, new.counter.count) == (3, 3, [1, 2, 2, 2], 3)
    assert_same(picture(new), picture(old))
    assert history(new) == history(old)
    assert_same((torch.rand(2), random.random(), np.random.random()), drawn)


def test_a_state_that_was_synced_does_not_go_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = checkpointed(monkeypatch, tmp_path)
    state.commit()
    state.finish()
    state.commit()
    state.sync()
    assert state.progress == 2
