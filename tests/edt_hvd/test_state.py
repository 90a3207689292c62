"""Commit, restore and what they cost; newcomers and failures for real are in tests/system."""

import itertools
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from horovod.common.exceptions import HostsUpdatedInterrupt
from torch import nn

import edt_hvd
from edt_hvd import checkpointing, reducer
from edt_hvd.boundary import BOUNDARY_BYTES
from edt_hvd.snapshot import SNAPSHOT_SHARE, copied

pytestmark = pytest.mark.usefixtures("alone")


class Counter:
    """Anything with torch's protocol."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.count = state_dict["count"]


def make_state(**values: Any) -> edt_hvd.TorchState:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.1), model)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    state = edt_hvd.TorchState(
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        epoch=0,
        history=[1],
        counter=Counter(),
        **values,
    )
    state.sync()
    return state


def train_step(state: edt_hvd.TorchState) -> None:
    state.model(torch.randn(5, 3)).square().sum().backward()
    state.optimizer.step()
    state.optimizer.zero_grad()


def picture(state: edt_hvd.TorchState) -> dict[str, Any]:
    """All that a restored state must agree in."""
    adam = state.optimizer.state_dict()["state"]
    return {
        "model": {key: value.clone() for key, value in state.model.state_dict().items()},
        "groups": [{name: group[name] for name in ("lr", "betas")} for group in state.optimizer.param_groups],
        "adam": {key: {name: value.clone() for name, value in one.items()} for key, one in adam.items()},
        "scheduler": dict(state.scheduler.state_dict()),
        "values": (state.epoch, list(state.history), state.counter.count),
    }


def change_values(state: edt_hvd.TorchState) -> None:
    state.scheduler.step()
    state.epoch += 1
    state.history.append(2)
    state.counter.count += 1


def assert_same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_restore_after_a_forward_pass_brings_buffers_and_values_back() -> None:
    state = make_state()
    train_step(state)
    state.commit()
    before = picture(state)
    state.model(torch.randn(5, 3))  # moves the batch norm's statistics, not the parameters
    change_values(state)
    state.restore()
    assert_same(picture(state), before)


def test_restore_after_an_optimizer_step_goes_back_to_the_last_snapshot() -> None:
    state = make_state()
    train_step(state)
    state.save()
    before, progress = picture(state), state.progress
    state._snapshots.taken(0.0, 1e9)  # too costly to be taken again
    for _ in range(3):
        train_step(state)
        change_values(state)
        state.commit()
    train_step(state)
    state.restore()
    assert_same(picture(state), before)
    assert state.progress == progress


def test_restore_may_be_repeated_and_shares_nothing_with_the_live_state() -> None:
    state = make_state()
    state.commit()
    before = picture(state)
    for _ in range(2):
        train_step(state)
        change_values(state)
        state.restore()
        assert_same(picture(state), before)


def test_snapshots_are_as_rare_as_their_cost_demands(monkeypatch: pytest.MonkeyPatch) -> None:
    state = make_state()
    clock = iter(float(second) for second in range(1000))
    monkeypatch.setattr("edt_hvd.state.time", SimpleNamespace(monotonic=lambda: next(clock)))
    state.save()  # costs one second of this clock, so the next is due 1 / SNAPSHOT_SHARE later
    taken: list[int] = []
    monkeypatch.setattr(state._snapshots, "take", lambda tree, commits: taken.append(commits))
    for _ in range(300):
        state.commit()
    assert 1 / SNAPSHOT_SHARE == 200
    assert taken == [256]


def test_snapshots_reuse_their_buffers() -> None:
    state = make_state()
    train_step(state)
    state.save()
    assert state._snapshots.last is not None
    first = state._snapshots.last.tree["model"]["0.weight"].data_ptr()
    state.save()
    assert state._snapshots.last.tree["model"]["0.weight"].data_ptr() == first


def test_large_modules_that_no_optimizer_steps_are_not_copied_at_every_commit() -> None:
    ballast = nn.Module()
    ballast.register_buffer("table", torch.zeros(BOUNDARY_BYTES))
    state = edt_hvd.TorchState(ballast=ballast, epoch=0)
    state.sync()
    assert state._boundary is None
    state.epoch = 5
    ballast.table += 1
    state.restore()
    assert state.epoch == 0
    assert ballast.table.sum() == 0


def test_large_buffers_that_do_not_change_cost_no_steps() -> None:
    state = make_state()
    state.model.register_buffer("causal", torch.ones(2 * BOUNDARY_BYTES, dtype=torch.bool), persistent=False)
    state.save()
    state._snapshots.take(state._tree(), 0)  # the first one's cost does not count
    state._snapshots.taken(0.0, 1e9)  # too costly to be taken again
    for _ in range(3):
        train_step(state)
        change_values(state)
        state.commit()
    before = picture(state)
    for _ in range(2):
        state.model(torch.randn(5, 3))
        change_values(state)
        state.restore()
        assert_same(picture(state), before)
    assert state.progress == 3
    assert state._boundary is not None
    assert "causal" not in state._boundary.tree["model"]
    assert state.model.causal.all()


def test_buffers_outside_the_state_dict_are_kept_too() -> None:
    module = nn.Module()
    module.register_buffer("cache", torch.zeros(2), persistent=False)
    state = edt_hvd.TorchState(module=module)
    state.sync()
    module.cache += 3
    state.restore()
    assert module.cache.tolist() == [0.0, 0.0]


def test_commit_leaves_the_function_when_all_have_agreed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    state = make_state()
    state.commit()
    monkeypatch.setattr("edt_hvd.state.world.current", object)
    monkeypatch.setattr(state, "report_progress", lambda now: None)
    monkeypatch.setattr(reducer, "_stop_agreed", True)
    with pytest.raises(HostsUpdatedInterrupt):
        state.commit()


def test_reset_callbacks_are_horovods() -> None:
    state = make_state()
    called: list[int] = []
    state.register_reset_callbacks([lambda: called.append(1), lambda: called.append(2)])
    state.on_reset()
    assert called == [1, 2]


def test_modules_that_no_optimizer_steps_are_restored_too() -> None:
    model = nn.Linear(2, 1)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = edt_hvd.TorchState(model=model, optimizer=optimizer, averaged=averaged)
    state.sync()
    before = [parameter.detach().clone() for parameter in averaged.parameters()]
    with torch.no_grad():
        for parameter in averaged.parameters():
            parameter.add_(1)
    state.restore()
    assert_same(list(averaged.parameters()), before)


def test_a_scaler_works_on_a_worker_that_has_scaled_no_loss() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    edt_hvd.TorchState(optimizer=optimizer, scaler=scaler).sync()
    weight.grad = torch.full((1,), 8.0)
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == -2.0


def exact_step(state: edt_hvd.TorchState, size: float) -> None:
    """A step of a loader, whose gradients are about `size`."""
    for step in edt_hvd.ElasticDataLoader(torch.randn(4, 3), 4, 2):
        for inputs in step:
            step.backward(state.model(inputs).square().sum() * size)


def history(state: edt_hvd.TorchState) -> tuple[list[int], int]:
    found = state.optimizer._edt_reducer.state_dict()
    return found["exponents"].tolist(), found["passes"]


def test_the_history_of_gradients_is_in_the_state_and_restored() -> None:
    state = make_state()
    exact_step(state, 1.0)
    state.commit()
    before = history(state)
    assert state._tree()["optimizer.gradients"]["exponents"].tolist() == before[0]
    exact_step(state, 2.0**40)  # the reduction is done, the step is not: a worker was lost in between
    assert history(state) != before
    state.restore()
    assert history(state) == before


def test_the_history_goes_back_to_the_snapshot_with_the_parameters() -> None:
    state = make_state()
    exact_step(state, 1.0)
    state.save()
    before = history(state)
    state._snapshots.taken(0.0, 1e9)  # too costly to be taken again
    exact_step(state, 2.0**40)
    state.optimizer.step()
    state.commit()
    exact_step(state, 2.0**80)
    state.optimizer.step()
    state.restore()
    assert history(state) == before


def test_a_newcomer_takes_over_the_history() -> None:
    old, newcomer = make_state(), make_state()
    exact_step(old, 2.0**-20)
    assert history(newcomer) != history(old)
    newcomer._load(old._tree())
    assert history(newcomer) == history(old)


def test_ring_has_no_history() -> None:
    model = nn.Linear(1, 1)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters()), model, reduction="ring")
    state = edt_hvd.TorchState(model=model, optimizer=optimizer)
    assert sorted(state._tree()) == ["model", "model.trainable", "optimizer"]


def test_parameters_changed_since_the_commit_go_back_too() -> None:
    model = nn.Linear(1, 1)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model)
    state = edt_hvd.TorchState(model=model, optimizer=optimizer)
    state.save()
    before = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(1.0)
    state.restore()
    assert torch.equal(model.weight, before)


def test_what_is_trainable_is_part_of_the_state() -> None:
    model, newcomer = nn.Linear(1, 1), nn.Linear(1, 1)
    model.bias.requires_grad_(False)
    edt_hvd.TorchState(model=newcomer)._load(edt_hvd.TorchState(model=model)._tree())
    assert [p.requires_grad for p in newcomer.parameters()] == [True, False]


def test_optimizer_states_keep_their_types() -> None:
    def made() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Linear(2, 1).double()
        return model, torch.optim.NAdam(model.parameters())

    (model, optimizer), (other, loaded) = made(), made()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    edt_hvd.TorchState(model=other, optimizer=loaded)._load(
        edt_hvd.TorchState(model=model, optimizer=optimizer)._tree()
    )
    states = zip(optimizer.state.values(), loaded.state.values(), strict=True)
    for name, mine, theirs in ((name, a[name], b[name]) for a, b in states for name in a):
        assert mine.dtype == theirs.dtype, name
        assert torch.equal(mine, theirs), name


class Transfer:
    """Stands in for the transfer between workers: this one receives a tree, as rank 1 of 2."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tree: dict[str, Any]) -> None:
        monkeypatch.setattr(edt_hvd.state.hvd, "size", lambda: 2)
        monkeypatch.setattr(edt_hvd.state.hvd, "rank", lambda: 1)
        monkeypatch.setattr(edt_hvd.state, "bring", lambda own, progress, holds: tree)


def test_a_checkpoint_that_does_not_fit_ends_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    state = edt_hvd.TorchState(epoch=0)
    Transfer(monkeypatch, {"epoch": 0, "progress": 0, "refusal": "it does not fit"})
    with pytest.raises(edt_hvd.StateError, match="it does not fit"):
        state.sync()


def test_a_first_sync_that_failed_is_tried_again_with_the_same_checkpoints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkpointed(monkeypatch, tmp_path).finish()
    monkeypatch.setattr(checkpointing, "_serial", itertools.count(1))
    state = edt_hvd.TorchState(epoch=0)
    for _ in range(2):  # does not fit
        with pytest.raises(edt_hvd.StateError, match="step-00000000"):
            state.sync()


def test_what_a_newcomer_has_received_is_its_first_full_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_state()
    train_step(old)
    old.commit()
    old.save()
    assert old._snapshots.last is not None
    newcomer = make_state()
    Transfer(monkeypatch, copied(old._tree()) | {"progress": 1, "refusal": None})
    newcomer.sync()
    before = picture(newcomer)
    train_step(newcomer)  # a worker was lost before the commit
    newcomer.restore()
    assert newcomer.progress == 1
    assert_same(picture(newcomer), before)


def test_a_survivor_takes_no_full_copy_in_the_pause() -> None:
    state = make_state()
    state._snapshots.taken(0.0, 1e9)  # too costly to be taken again
    train_step(state)
    state.commit()
    before, last = picture(state), state._snapshots.last
    state.sync()
    assert state._snapshots.last is last
    change_values(state)
    state.restore()
    assert_same(picture(state), before)
    assert state.progress == 1


def test_what_a_reset_callback_changes_is_kept() -> None:
    state = make_state()
    state.commit()
    state.optimizer.param_groups[0]["lr"] = 0.5
    state.sync()
    state.optimizer.param_groups[0]["lr"] = 0.7
    state.restore()
    assert state.optimizer.param_groups[0]["lr"] == 0.5


def checkpointed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> edt_hvd.TorchState:
    """A state that writes a checkpoint at every commit that the last write allows."""
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(folder))
    monkeypatch.setenv("EDT_CHECKPOINT_INTERVAL", "0")
    monkeypatch.setattr(checkpointing, "_serial", itertools.count(1))
    return make_state()


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


@pytest.mark.parametrize(
    "values, said",
    [
        ({"model": nn.Linear(3, 5)}, "its model.weight is float32[4, 3], here it is float32[5, 3]"),
        ({"other": 1}, "it has no 'other'"),
    ],
)
def test_a_checkpoint_of_another_state_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setattr(checkpointing, "_serial", itertools.cycle([1]))
    old = edt_hvd.TorchState(model=nn.Linear(3, 4))
    old.sync()
    old.commit()
    old.finish()
    new = edt_hvd.TorchState(**{"model": nn.Linear(3, 4)} | values)
    with pytest.raises(edt_hvd.StateError, match=re.escape(said)) as caught:
        new.sync()
    assert "step-00000001 does not fit" in str(caught.value)
    assert "--output-dir" in str(caught.value)
