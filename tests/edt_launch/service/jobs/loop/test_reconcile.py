"""Actions are done in their order; what cannot be done with one job is left for the next step."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from edt_launch.allocator.model import HostDevices
from edt_launch.service.app.home import Home, JobDir
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.loop import device_grant
from edt_launch.service.jobs.loop.device_grant import DeviceGrant
from edt_launch.service.jobs.loop.launching.launchers import Launchers
from edt_launch.service.jobs.loop.observed import Launch, Move, Note, Remember, WriteFile
from edt_launch.service.jobs.loop.reconcile import Reconciler
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State

FIRST, SECOND = "jaaaaaaaa", "jbbbbbbbb"
CONTENT = DeviceGrant(1, (HostDevices("h", ("0", "1")),))


class Failing(Launchers):
    """Cannot start anything."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def start(self, record: JobRecord, paths: JobDir) -> bool:
        raise self.error


class World:
    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.store = Store.opened(f"sqlite:///{root}/edt.db")
        for id_ in (FIRST, SECOND):
            self.home.job(id_).root.mkdir(parents=True)
            self.store.jobs.add(JobRecord(id_, "ann", ("x",), 1, 4, 0.0))

    def reconciler(self, error: OSError | None = None) -> Reconciler:
        return Reconciler(self.home, self.store, Launchers() if error is None else Failing(error))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.store.close()


def change(job: str) -> Remember:
    return Remember(AllocationRecord(job, "ann", 1.0, 0, 2, (), "there is room"))


def test_what_is_done_is_told_and_stored(world: World) -> None:
    move = Move(FIRST, State.STARTING, "there is room", {"size": 2})
    notes = Note(FIRST, {"target": 3}), Note(SECOND, {"step": 5})
    done = world.reconciler().apply(1.0, [*notes, WriteFile(FIRST, CONTENT), move, change(FIRST)])
    row = world.store.jobs.get(FIRST)
    assert (row.state, row.size, row.target, row.reason) == (State.STARTING, 2, 3, "there is room")
    assert done.records == {FIRST: row}
    assert done.notes == {SECOND: {"step": 5}}
    assert done.grants == {FIRST: CONTENT}
    assert device_grant.read(world.home.job(FIRST).allocation.read_text()) == CONTENT
    assert world.store.jobs.get(SECOND).step == 5
    assert len(world.store.history.newest(FIRST)) == 1


def test_trouble_with_one_job_is_logged_once_and_holds_up_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.home.job(FIRST).root.rmdir()
    reconciler = world.reconciler()
    actions = [WriteFile(FIRST, CONTENT), Note(FIRST, {"size": 2}), change(FIRST), WriteFile(SECOND, CONTENT)]
    for _ in range(2):
        assert reconciler.apply(1.0, actions).grants == {SECOND: CONTENT}
    assert len(caplog.messages) == 1
    assert f"{FIRST}: WriteFile" in caplog.messages[0]
    assert world.store.jobs.get(FIRST).size == 0
    assert world.store.history.newest(FIRST) == []
    world.home.job(FIRST).root.mkdir()
    assert FIRST in reconciler.apply(1.0, actions).grants


@pytest.mark.parametrize(
    "error, state",
    [
        (FileNotFoundError(errno.ENOENT, "no code"), State.FAILED),
        (OSError(errno.EMFILE, "too many open files"), State.STARTING),
        (BlockingIOError(errno.EAGAIN, "no more processes"), State.STARTING),
    ],
)
def test_what_the_machine_lacks_for_a_while_does_not_fail_a_job(
    world: World, error: OSError, state: State
) -> None:
    record = world.store.jobs.get(FIRST)
    world.reconciler(error).apply(1.0, [Move(FIRST, State.STARTING, ""), Launch(record)])
    row = world.store.jobs.get(FIRST)
    assert row.state is state
    assert row.failure == (str(error) if state is State.FAILED else None)


def test_what_a_failing_database_has_not_taken_is_not_written_later(world: World) -> None:
    errors: list[Exception] = [OperationalError("", {}, Exception("locked"))]

    def between() -> None:
        if errors:
            raise errors.pop()

    reconciler = Reconciler(world.home, world.store, Launchers(), between)
    with pytest.raises(OperationalError):
        reconciler.apply(1.0, [Note(FIRST, {"size": 2}), change(FIRST)])
    reconciler.apply(2.0, [Note(SECOND, {"size": 1})])
    assert world.store.jobs.get(FIRST).size == 0
    assert world.store.history.newest(FIRST) == []
