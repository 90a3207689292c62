"""A worker's place; how it changes is shown in tests/system."""

import os

import pytest
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt

import edt_hvd
from edt_hvd.errors import HorovodBuildError
from edt_hvd.world import elastic_world, preemption, world
from edt_hvd.world.assigned_world import AssignedWorld
from edt_messages.messages import Assign


@pytest.mark.usefixtures("alone")
def test_one_process_is_a_world_of_one() -> None:
    edt_hvd.init()
    assert (edt_hvd.rank(), edt_hvd.size(), edt_hvd.local_rank(), edt_hvd.local_size()) == (0, 1, 0, 1)
    assert edt_hvd.is_coordinator()
    assert (world.max_size(), world.membership()) == (1, 0)


ENVIRON = {"EDT_COORDINATOR": "127.0.0.1:1", "EDT_WORKER_TOKEN": "t", "EDT_WORKER": "0", "EDT_MAX_NP": "64"}


def test_under_a_launcher_a_notice_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_world", AssignedWorld(ENVIRON))
    assert edt_hvd.leave("the spot market")
    assert preemption.next_notice(timeout=30) == "the spot market"
    edt_hvd.leave("x" * 2**20)
    assert preemption.next_notice(timeout=30) == "x" * 1000


def test_a_horovod_that_cannot_abort_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_world.hvd.mpi_ops._basics, "MPI_LIB_CTYPES", object())
    with pytest.raises(HorovodBuildError, match=r"no horovod_abort_collectives.*run 'make setup'"):
        AssignedWorld(ENVIRON)


@pytest.mark.parametrize(
    "forming, generation, aborts",
    [(None, 1, False), (None, 2, True), (None, 3, True), (3, 2, False), (3, 3, True), (3, 4, True)],
)
def test_only_the_world_in_force_or_being_formed_is_aborted(
    forming: int | None, generation: int, aborts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    aborted: list[None] = []
    monkeypatch.setattr(elastic_world, "abort_collectives", lambda: aborted.append(None))
    here = AssignedWorld(ENVIRON)
    here.generation = 2
    here._forming = forming
    here._note_broken(generation)
    assert bool(aborted) == aborts
    assert here.is_broken == (generation >= 2)


def test_nccl_is_to_give_up_in_every_world_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(
        elastic_world, "horovod_init", lambda: seen.append(os.environ.get("EDT_ELASTIC_NCCL"))
    )
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert elastic_world._initialize(Assign(0, 1, 0, 1, 0, 1, "here", 1, 0))
    assert seen == ["1"]


@pytest.mark.parametrize("kind", [HorovodInternalError, HostsUpdatedInterrupt])
def test_handlers_of_errors_let_losses_and_resizes_through(kind: type[BaseException]) -> None:
    assert not issubclass(kind, Exception)
