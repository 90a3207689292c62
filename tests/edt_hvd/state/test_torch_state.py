"""Commit, restore and what they cost; newcomers and failures for real are in tests/system."""

import copy
from collections.abc import Callable

import pytest
import torch
from horovod.common.exceptions import HorovodInternalError
from torch import nn

import edt_hvd
from edt_hvd.state.recovery.rollback_point import ROLLBACK_POINT_BYTES
from edt_hvd.world.assigned_world import AssignedWorld
from states import assert_same, change_values, make_state, picture, train_step

pytestmark = pytest.mark.usefixtures("alone")

ENVIRON = {"EDT_COORDINATOR": "127.0.0.1:1", "EDT_WORKER_TOKEN": "t", "EDT_WORKER": "0", "EDT_MAX_NP": "64"}


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
    state._rollback.snapshots.taken(0.0, 1e9)  # too costly to be taken again
    for _ in range(3):
        train_step(state)
        change_values(state)
        state.commit()
    train_step(state)
    state.restore()
    assert_same(picture(state), before)
    assert state.progress == progress


@pytest.mark.filterwarnings("ignore:optimizer.step.. was not called")
def test_a_further_pass_may_begin_with_other_parameters_than_the_commits() -> None:
    state = make_state()
    before = picture(state)
    for step in edt_hvd.ElasticDataLoader(torch.randn(4, 3), 4, 2):
        for inputs in step:
            step.backward(state.model(inputs).square().mean())
        state.model[0].weight.data.add_(1)  # torch does not count it
        next(iter(step))  # a worker was lost
        break
    state.restore()
    assert_same(picture(state), before)


def test_large_modules_that_no_optimizer_steps_are_not_copied_at_every_commit() -> None:
    ballast = nn.Module()
    ballast.register_buffer("table", torch.zeros(ROLLBACK_POINT_BYTES))
    state = edt_hvd.TorchState(ballast=ballast, epoch=0)
    state.sync()
    assert state._rollback.point.tree["ballast"] == {}
    state.epoch = 5
    ballast.table += 1
    state.restore()
    assert state.epoch == 0
    assert ballast.table.sum() == 0


def test_large_tensors_that_belong_to_no_module_are_in_full_copies_alone() -> None:
    state = edt_hvd.TorchState(history={"all": torch.zeros(ROLLBACK_POINT_BYTES)})
    state.restore()  # to nothing yet
    state.sync()
    state.commit()
    assert state._rollback.point is None
    state.history["all"] += 1
    state.restore()
    assert state.history["all"].sum() == 0


def test_reset_callbacks_are_horovods() -> None:
    state = make_state()
    called: list[int] = []
    state.register_reset_callbacks([lambda: called.append(1), lambda: called.append(2)])
    state.on_reset()
    assert called == [1, 2]


def counting(averaged: torch.Tensor, weight: torch.Tensor) -> None:
    averaged.lerp_(weight, 0.5)


def uncounted(averaged: torch.Tensor, weight: torch.Tensor) -> None:
    averaged.data.lerp_(weight, 0.5)


def replacing(averaged: torch.Tensor, weight: torch.Tensor) -> None:
    averaged.data = averaged.data.lerp(weight, 0.5)


@pytest.mark.parametrize("write, commits", [(counting, 3), (uncounted, 0), (replacing, 0)])
@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_large_average_of_the_weights_costs_no_steps_where_its_changes_are_counted(
    write: Callable[[torch.Tensor, torch.Tensor], None], commits: int, is_ahead: bool
) -> None:
    model = nn.Linear(1024, 1024, bias=False)
    averaged = copy.deepcopy(model).requires_grad_(False)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model)
    state = edt_hvd.TorchState(
        model=model, optimizer=optimizer, averaged=averaged, teacher=nn.Linear(1024, 512)
    )
    state.sync()
    state._rollback.snapshots.taken(0.0, 1e9)  # too costly to be taken again
    wanted = {0: [averaged.weight.clone(), model.weight.detach().clone()]}
    for commit in range(1, 4):
        model(torch.randn(4, 1024)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        write(averaged.weight, model.weight.detach())
        state.commit()
        wanted[commit] = [averaged.weight.clone(), model.weight.detach().clone()]
    if is_ahead:
        write(averaged.weight, torch.zeros(1024, 1024))
        commits = 0
    for _ in range(2):
        state.restore()
        assert state.progress == commits
        assert_same([averaged.weight, model.weight.detach()], wanted[commits])


def test_another_loop_than_ours_is_refused_where_the_world_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Horovod's own loop would leave what belongs to the old world as it is."""
    state = make_state()
    monkeypatch.setattr("edt_hvd.state.torch_state.world.current", lambda: AssignedWorld(ENVIRON))
    with pytest.raises(RuntimeError, match=r"decorate the function with @edt_hvd\.elastic"):
        state.sync()


def test_a_commit_in_a_world_that_has_lost_a_worker_counts_and_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A script may have kept the failure of a collective from the elastic function."""
    state, here = make_state(), AssignedWorld(ENVIRON)
    state.sync()
    here.generation, here.launcher = 3, None
    monkeypatch.setattr("edt_hvd.state.torch_state.world.current", lambda: here)
    state.commit()
    here._note_broken(3)
    with pytest.raises(HorovodInternalError, match="lost a worker"):
        state.commit()
    assert state.progress == 2


@pytest.mark.parametrize("name", ["progress", "commit", "committed_at", "_contents", "on_reset"])
def test_a_value_with_the_name_of_the_states_own_is_refused(name: str) -> None:
    with pytest.raises(
        edt_hvd.StateError, match=rf"TorchState can be called {name}: .*Reserved are check_host_updates, "
    ):
        edt_hvd.TorchState(**{name: 3})


@pytest.mark.parametrize("name", ["progress", "commit", "committed_at", "on_reset"])
def test_what_is_the_states_own_cannot_be_set(name: str) -> None:
    state = edt_hvd.TorchState(epoch=3)
    with pytest.raises(edt_hvd.StateError, match=rf"TorchState can be called {name}: .*choose others"):
        setattr(state, name, 3)
    with pytest.warns(UserWarning, match="state.best is no value of the state: workers that join"):
        state.best = 0.5  # the script's own affair
    state.best = 0.6
    state.commit()
    assert state.progress == 1


def test_a_plain_value_that_becomes_an_object_with_a_state_is_refused_at_the_commit() -> None:
    state = edt_hvd.TorchState(scheduler=None, model=nn.Linear(1, 1))
    state.commit()
    state.scheduler = nn.Linear(2, 2)
    with pytest.raises(edt_hvd.StateError, match=r"state\.scheduler had no state_dict\(\).* is a Linear now"):
        state.commit()
    state.scheduler = None
    state.commit()
    state.model = None
    with pytest.raises(edt_hvd.StateError, match=r"state\.model had state_dict\(\).* is a NoneType now"):
        state.commit()
    assert state.progress == 2
