"""A simulated machine room: rows, files, launchers and their workers, without any of them being there.

`World.perform` carries out actions like the real thing, as far as a test lets it; a launcher does its parts
one by one, when the test says so. What workers really use is known here, and nowhere else.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from edt_launch.core.control_protocol import Pause, Request
from edt_launch.core.errors import ExitCode
from edt_launch.core.history import events
from edt_launch.service.cluster.records import HostRecord, ShareRecord
from edt_launch.service.jobs.loop.device_grant import DeviceGrant, devices_of
from edt_launch.service.jobs.loop.observed import (
    Action,
    AllocationRound,
    Decided,
    Kill,
    Launch,
    Move,
    Note,
    ObservedJob,
    ObservedLauncher,
    ObservedState,
    Prepare,
    Send,
    Sweep,
    WriteFile,
)
from edt_launch.service.jobs.loop.progress import Device, JobProgress
from edt_launch.service.jobs.loop.step import step
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import ENDED, HAS_LAUNCHER, check


@dataclass
class Process:
    """A launcher: what it has told nobody yet, too."""

    pid: int
    bounds: tuple[int, int]
    has_begun: bool = False
    read: DeviceGrant = field(default_factory=lambda: DeviceGrant(-1))
    generation: int = -1
    workers: dict[int, Device] = field(default_factory=dict)
    dismissed: set[int] = field(default_factory=set)
    next_worker: int = 0
    requests: list[Request] = field(default_factory=list)


class World:
    """Everything there is."""

    def __init__(self, hosts: Iterable[HostRecord], shares: Iterable[ShareRecord] = ()) -> None:
        self.now = 1000.0
        self.hosts = {host.name: host for host in hosts}
        self.shares = tuple(shares)
        self.rows: dict[str, JobRecord] = {}
        self.files: dict[str, DeviceGrant] = {}
        self.identities: dict[str, tuple[int, float]] = {}
        self.progress: dict[str, JobProgress] = {}
        self.processes: dict[str, Process] = {}
        self.orphans: dict[str, dict[int, Device]] = {}
        self.hidden: set[str] = set()
        self.last: AllocationRound | None = None
        self.next_pid = 1
        self.idle_timeout = 0.0
        self.is_elastic = True
        """Whether what jobs run comes to an elastic function."""

    # What the loop sees and does.

    def observed(self) -> ObservedState:
        jobs = tuple(self.job(id_) for id_, row in self.rows.items() if row.state not in ENDED)
        hosts = tuple(self.hosts.values())
        return ObservedState(jobs, hosts, self.shares, last=self.last, idle_timeout=self.idle_timeout)

    def job(self, id_: str) -> ObservedJob:
        launcher = ObservedLauncher(
            is_alive=id_ in self.processes,
            identity=self.identities.get(id_),
            has_leftovers=id_ not in self.processes and bool(self.orphans.get(id_)),
            accepted=next((request.id for request in reversed(self.requests(id_))), None),
        )
        grant = self.files.get(id_, DeviceGrant())
        if id_ in self.hidden:
            launcher = ObservedLauncher(is_alive=self.rows[id_].state in HAS_LAUNCHER)
            return ObservedJob(
                self.rows[id_],
                grant,
                launcher=launcher,
                trouble="its files cannot be read: Input/output error",
            )
        return ObservedJob(self.rows[id_], grant, self.progress.get(id_, JobProgress()), launcher)

    def requests(self, id_: str) -> list[Request]:
        """What its launcher has acknowledged."""
        return self.processes[id_].requests if id_ in self.processes else []

    def step(self, most: int | None = None) -> Decided:
        """One step, of whose actions only the first `most` are done, as if the service was killed then."""
        decided = step(self.now, self.observed())
        for action in decided.actions[:most]:
            self.perform(action)
        self.last = decided.round if most is None or most >= len(decided.actions) else None
        return decided

    def perform(self, action: Action) -> None:
        match action:
            case Prepare(id_):
                self.identities.pop(id_, None)
            case WriteFile(id_, content):
                assert content.generation > self.files.get(id_, DeviceGrant()).generation
                assert content.held
                self.files[id_] = content
            case Move(id_, to, reason, fields):
                check(id_, self.rows[id_].state, to)
                self.rows[id_] = replace(self.rows[id_], state=to, reason=reason, **fields)
            case Note(id_, fields):
                self.rows[id_] = replace(self.rows[id_], **fields)
            case Launch(record):
                assert record.id not in self.orphans
                assert record.id not in self.processes, "started twice"
                self.processes[record.id] = Process(self.next_pid, (record.min, record.max))
                self.next_pid += 1
            case Send(id_, request):
                process = self.processes.get(id_)
                if process is not None and process.has_begun:
                    process.requests.append(request)
            case Kill(id_):
                if id_ in self.processes and self.processes[id_].has_begun:
                    self.kill(id_)
            case Sweep(id_):
                self.orphans.pop(id_, None)

    # What jobs do.

    def event(self, id_: str, event: events.Event) -> None:
        progress = self.progress.get(id_, JobProgress())
        self.progress[id_] = progress.after([replace(event, time=self.now)])[0]

    def begin(self, id_: str) -> None:
        process = self.processes[id_]
        process.has_begun = True
        low, high = process.bounds
        self.identities[id_] = (process.pid, float(process.pid))
        self.event(id_, events.Begun(process.pid, float(process.pid), low, high))

    def read(self, id_: str) -> None:
        """The launcher accepts the file."""
        process, content = self.processes[id_], self.files[id_]
        low, high = process.bounds
        if low <= content.size <= high:
            process.read = content

    def follow(self, id_: str) -> None:
        """The driver takes in what was accepted: starts the missing, dismisses the unwanted, says so."""
        process = self.processes[id_]
        content = process.read
        if content.generation <= process.generation:
            return
        process.generation = content.generation
        wanted = devices_of(content.held)
        for number, device in process.workers.items():
            if device not in wanted:
                process.dismissed.add(number)
        for host, name in sorted(wanted - set(process.workers.values())):
            self.start_worker(id_, (host, name))
        self.event(id_, events.Following(content.generation))

    def start_worker(self, id_: str, device: Device) -> None:
        process = self.processes[id_]
        number = process.next_worker
        process.next_worker += 1
        process.workers[number] = device
        self.event(id_, events.Started(number, device[0], 0, device[1], 0))

    def train(self, id_: str) -> None:
        process = self.processes[id_]
        size = len(process.workers.keys() - process.dismissed)
        if size and self.is_elastic:
            self.event(id_, events.Ready(min(process.workers), 1))
            self.event(id_, events.World(1, size))

    def release(self, id_: str) -> None:
        """Those who were dismissed leave; in their devices, if they are wanted again, others are started."""
        process = self.processes[id_]
        for number in sorted(process.dismissed):
            del process.workers[number]
            self.event(id_, events.Released(number, "", 0, None))
        process.dismissed.clear()

    def end(self, id_: str, exit_code: int) -> None:
        process = self.processes.pop(id_)
        for number in process.workers:
            self.event(id_, events.Released(number, "", 0, None))
        self.event(id_, events.Ended(exit_code))

    def obey(self, id_: str) -> None:
        """Do what it was asked for, the strongest first."""
        requests = self.requests(id_)
        if requests:
            is_pause = all(isinstance(request, Pause) for request in requests)
            self.end(id_, ExitCode.LEFT if is_pause else ExitCode.TERMINATED)

    def kill(self, id_: str) -> None:
        process = self.processes.pop(id_)
        if process.workers:
            self.orphans[id_] = process.workers

    # What must always be so.

    def in_use(self) -> list[Device]:
        """Devices that processes use now, as often as they are used."""
        alive = [process.workers for process in self.processes.values()]
        return [device for workers in [*alive, *self.orphans.values()] for device in workers.values()]

    def settle(self, steps: int = 12) -> None:
        """Let everything happen that is going to."""
        self.hidden.clear()
        for _ in range(steps):
            self.now += 20.0
            self.step()
            for id_ in list(self.processes):
                if not self.processes[id_].has_begun:
                    self.begin(id_)
                self.read(id_)
                self.follow(id_)
                self.release(id_)
                self.train(id_)
                self.obey(id_)

    def sizes(self) -> dict[str, int]:
        return {id_: row.size for id_, row in self.rows.items() if row.state not in ENDED}


def submit(
    world: World, id_: str, owner: str, low: int = 1, high: int = 4, priority: int = 0, **fields: Any
) -> None:
    """A new job."""
    world.rows[id_] = JobRecord(
        id_, owner, ("python", "train.py"), low, high, world.now, priority=priority, **fields
    )
