"""The loop over a real database, files and processes, killed between any two changes that it makes."""

import contextlib
import errno
import json
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from databases import sqlite_at
from edt_launch.allocator.model import Options
from edt_launch.cluster.allocation import HostSlots
from edt_launch.core.files import plain_files
from edt_launch.service.app.home import JobDir
from edt_launch.service.app.settings import load
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.db.engine import Database
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.loop import device_grant, loop, pool
from edt_launch.service.jobs.loop.launching.launchers import Launchers
from edt_launch.service.jobs.loop.launching.sweeps import Found, Sweeps
from edt_launch.service.jobs.loop.lifecycle import AGAIN
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted
from tiers import full

EVERY = 7
"""Of how many changes that the loop makes one does not come about."""

FIRST_ONES = [n if n % 3 == 1 else full(n) for n in range(1, EVERY + 1)]
"""Which is the first of them: all changes in `test-all`, some of them in `make test`."""

FAKE = (sys.executable, "-S", str(Path(__file__).with_name("fake_launcher.py")))


class Killed(BaseException):
    """The service ends here, as if by kill -9."""


class Flaky(Database):
    """A database that is away in every seventh transaction."""

    count = 0

    def _count(self) -> None:
        self.count += 1
        if self.count % 7 == 0:
            raise OperationalError("BEGIN", {}, Exception("it is being restarted"))

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        self._count()
        with super().reading() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        self._count()
        with super().writing() as connection:
            yield connection


class Service:
    """Services on one folder, one after the other."""

    def __init__(self, home: Path) -> None:
        self.settings = load(home=home, interval=60.0, coalesce=0.0, protected=0.0)
        self.settings.home.mkdir()
        self.store = sqlite_at(self.settings.home / "edt.db")
        self.store.hosts.put([HostRecord("localhost", ("0", "1", "2", "3"))])
        self.launchers: list[Launchers] = []
        self.kill_at: Container[int] = ()
        self.kills = 0
        self.points = 0
        self.later = 0.0
        self.listed: dict[str, HostSlots] = {}
        self.start()

    def start(self) -> None:
        for before in self.launchers:
            before.close()
        self.launchers.append(Launchers(FAKE, sweeps=Sweeps(lambda train, hosts: Found())))
        options = Options(imbalance_time=0.0)
        self.pool = pool.Pool(
            *(self.settings, self.store, Bus(), self.launchers[-1], self.between, options),
            listed=lambda: self.listed,
        )

    def between(self) -> None:
        self.points += 1
        if self.points in self.kill_at:
            raise Killed

    def step(self) -> None:
        """One round of the loop; if it is killed in it, another service takes over."""
        self.pool.read_again()
        try:
            self.pool.look(time.time() + self.later)
            self.pool.act(time.time() + self.later)
        except Killed:
            self.kills += 1
            self.later += AGAIN  # so that what it did not get to ask is asked at once
            self.start()

    def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self.step()
            time.sleep(0.005)  # processes may get on

    def submit(self, id_: str, owner: str, low: int = 1, high: int = 4, after: tuple[str, ...] = ()) -> str:
        for folder in self.paths(id_).folders:
            folder.mkdir(parents=True)
        record = JobRecord(id_, owner, ("python", "train.py"), low, high, time.time(), after=after)
        self.store.jobs.add(record)
        return id_

    def run_first(self) -> Path:
        """One job has all four slots; its allocation file."""
        self.submit(FIRST, "ann")
        self.until(lambda: self.is_running((FIRST, 4)))
        return self.paths(FIRST).allocation

    def want(self, id_: str, wanted: Wanted, *sizes: tuple[str, int]) -> None:
        """Wait until a job is stopped or paused, as desired, or jobs run with these sizes."""
        self.store.jobs.set_wanted(id_, wanted)
        ends = {Wanted.PAUSE: State.PAUSED, Wanted.STOP: State.STOPPED}
        self.until(lambda: self.is_running(*sizes) if sizes else self.job(id_).state is ends[wanted])

    def paths(self, id_: str) -> JobDir:
        return self.settings.paths.job(id_)

    def job(self, id_: str) -> JobRecord:
        return self.store.jobs.get(id_)

    def is_running(self, *sizes: tuple[str, int]) -> bool:
        rows = [(self.job(id_), size) for id_, size in sizes]
        return all(row.state is State.RUNNING and row.size == size for row, size in rows)

    def events(self, id_: str, *kinds: str) -> list[dict[str, object]]:
        rows = [json.loads(line) for line in self.paths(id_).output.events.read_text().splitlines()]
        return [row for row in rows if row["event"] in kinds]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "home")
    yield one
    for launchers in one.launchers:
        launchers.close()
        for child in launchers.children:
            child.kill()
            child.wait()
    one.store.close()


FIRST, SECOND = "jaaaaaaaa", "jbbbbbbbb"


def scenario(service: Service) -> None:
    """One job has all slots, another gets half of them, the first ends, the second is paused and resumed."""
    service.run_first()
    service.submit(SECOND, "bob")
    service.until(lambda: service.is_running((FIRST, 2), (SECOND, 2)))
    (service.paths(FIRST).root / "finish").touch()
    service.until(lambda: service.is_running((SECOND, 4)))
    service.want(SECOND, Wanted.PAUSE)
    service.want(SECOND, Wanted.RUN, (SECOND, 4))
    service.want(SECOND, Wanted.STOP)


def check(service: Service) -> None:
    assert service.job(FIRST).state is State.SUCCEEDED
    assert [len(service.events(id_, "begun")) for id_ in (FIRST, SECOND)] == [1, 2]
    for id_ in (FIRST, SECOND):
        generations = [event["generation"] for event in service.events(id_, "following")]
        assert all(a < b for a, b in pairwise(generations)), generations  # type: ignore[operator]
        assert service.job(id_).size == 0
    uses = sorted((*use, id_) for id_ in (FIRST, SECOND) for use in used(service, id_))
    overlapping = [(a, b) for a, b in pairwise(uses) if a[0] == b[0] and b[1] < a[2]]
    assert overlapping == []


def used(service: Service, id_: str) -> Iterator[tuple[str, float, float]]:
    """Device, begin and end of each worker's time on it."""
    begun: dict[int, tuple[str, float]] = {}
    for event in service.events(id_, "started", "released", "ended"):
        at = float(str(event["time"]))
        if event["event"] == "started":
            begun[int(str(event["worker"]))] = (str(event["device"]), at)
        gone = list(begun) if event["event"] == "ended" else [int(str(event["worker"]))]
        for worker in gone if event["event"] != "started" else []:
            yield (*begun.pop(worker), at)


def test_a_file_says_how_its_hosts_are_reached_when_that_is_another_way(service: Service) -> None:
    allocation = service.run_first()
    before = device_grant.read(allocation.read_text())
    for agent in ("/opt/a/edt", "/opt/b/edt"):
        service.listed = {"localhost": HostSlots("localhost", 4, None, "ssh", agent)}
        service.start()  # what was written by a service before this one counts
        service.step()
        text = allocation.read_text()
        assert f"localhost:4 devices=0,1,2,3 transport=ssh agent={agent}" in text
        assert service.job(FIRST).generation == device_grant.read(text).generation
        service.step()
        assert allocation.read_text() == text
    assert device_grant.read(text) == replace(before, generation=before.generation + 2)
    service.want(FIRST, Wanted.STOP)


@pytest.mark.parametrize("first", FIRST_ONES)
def test_a_service_killed_between_any_two_changes_costs_a_moment(service: Service, first: int) -> None:
    service.kill_at = range(first, 1000, EVERY)
    scenario(service)
    assert service.kills >= 2
    check(service)


def test_jobs_go_on_while_the_database_comes_and_goes(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "TROUBLE", 0.0)
    monkeypatch.setattr(pool, "Launchers", lambda **_: service.launchers[0])
    bus, stop, database = Bus(), threading.Event(), Flaky(service.settings.database_url)
    settings = service.settings.model_copy(update={"interval": 0.1})
    options = Options(imbalance_time=0.0)
    thread = threading.Thread(target=loop.run, args=(settings, Store(database), bus, stop, options))
    thread.start()
    monkeypatch.setattr(service, "step", lambda: time.sleep(0.01))
    scenario(service)
    database.count = 6  # the end, too
    stop.set()
    thread.join()
    database.close()
    check(service)
    assert [one.after for one in service.store.history.newest(FIRST) if one.after != one.before] == [4, 2, 0]
    assert [past.after for past in service.store.jobs.transitions(SECOND)] == [
        *(State.QUEUED, State.STARTING, State.RUNNING, State.PAUSING, State.PAUSED),
        *(State.QUEUED, State.STARTING, State.RUNNING, State.STOPPING, State.STOPPED),
    ]


def test_an_allocation_file_that_cannot_be_read_at_the_start_holds_up_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = service.run_first()
    service.submit(SECOND, "bob")
    service.kill_at = [service.points + 2]
    service.step()  # the file gives it two devices less; its row does not say so yet
    assert (service.job(FIRST).size, device_grant.read(file.read_text()).size) == (4, 2)
    read, third = plain_files.read, "jcccccccc"

    def failing(path: Path, most: int = plain_files.MAX_BYTES) -> bytes:
        if path == file:
            raise OSError(errno.EIO, "Input/output error")
        return read(path, most)

    monkeypatch.setattr(plain_files, "read", failing)
    service.start()
    service.store.hosts.put([HostRecord("localhost", tuple("012345"))])  # one for each of the others
    service.submit(third, "eve", high=2)
    service.until(lambda: service.is_running((third, 1)))
    assert (service.job(FIRST).size, device_grant.read(file.read_text()).size) == (4, 2)
    assert sum(FIRST in message for message in caplog.messages) == 1
    monkeypatch.setattr(plain_files, "read", read)
    service.until(lambda: service.is_running((FIRST, 2), (SECOND, 2), (third, 2)))


def test_what_jobs_have_used_is_known_to_the_next_service(service: Service) -> None:
    service.submit(FIRST, "ann", low=2)
    service.until(lambda: service.is_running((FIRST, 4)))
    service.later = 1000.0
    service.step()
    service.start()
    service.later = 1100.0
    service.step()
    job = service.job(FIRST)
    assert job.service == pytest.approx(4 * 1100.0, rel=0.05)
    assert job.entitlement == pytest.approx(4 * 1100.0, rel=0.05)
    assert job.attained == pytest.approx(2 * 1100.0, rel=0.05)


def test_a_job_starts_after_one_that_succeeded_while_the_service_was_killed(service: Service) -> None:
    service.run_first()
    service.submit(SECOND, "bob", after=(FIRST,))
    service.submit("jcccccccc", "bob", after=("jgoneaaaa",))
    service.until(lambda: service.job(SECOND).reason == f"waits for the success of {FIRST}")
    assert service.job("jcccccccc").state is State.STOPPED
    (service.paths(FIRST).root / "finish").touch()
    record = service.store.jobs.record
    service.store.jobs.record = lambda observed: (_ for _ in ()).throw(Killed())  # type: ignore[method-assign]
    service.until(lambda: service.job(FIRST).state is State.SUCCEEDED)
    service.store.jobs.record = record  # type: ignore[method-assign]
    service.start()
    service.until(lambda: service.is_running((SECOND, 4)))


def test_a_file_that_was_spoilt_is_written_anew(service: Service) -> None:
    file = service.run_first()
    file.write_bytes(b"\xff\xfe\n")
    service.start()
    service.submit(SECOND, "bob")
    service.until(lambda: service.job(FIRST).size == 2)
    assert device_grant.read(file.read_text()).size == 2


def test_it_wakes_for_changes_and_ends_when_it_is_told(service: Service) -> None:
    bus, stop = Bus(), threading.Event()
    thread = threading.Thread(target=loop.run, args=(service.settings, service.store, bus, stop))
    thread.start()
    service.submit(FIRST, "ann", low=9, high=9)
    bus.notify(Topic.DESIRED_STATE)
    while service.job(FIRST).why is None:
        time.sleep(0.01)
    stop.set()
    thread.join()


def test_changes_are_gathered_for_a_while() -> None:
    clock = loop.Clock(coalesce=0.5, interval=5.0)
    clock.changed(100.0)
    clock.changed(100.4)
    assert [clock.is_due(now) for now in (100.4, 100.5)] == [False, True]
    clock.decided(100.5, None)
    assert [clock.is_due(now) for now in (105.4, 105.5)] == [False, True]
    clock.decided(105.5, 106.0)
    assert clock.is_due(106.0)
    assert clock.is_due(50.0)  # the clock was set back
