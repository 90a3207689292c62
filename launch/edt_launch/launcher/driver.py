"""The shell around `membership`: sockets, processes and clocks in, actions out.

`Driver` has the methods that Horovod's launcher calls on its own ElasticDriver, and takes its place
in a horovodrun that edt-launch has started.
"""

import logging
import os
import queue
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil
from horovod.runner.common.util.hosts import SlotInfo
from horovod.runner.elastic.discovery import DiscoveredHosts
from horovod.runner.elastic.driver import Results

from edt_launch.agent import processes
from edt_launch.errors import StartError, StartTimeoutError
from edt_launch.launcher import following, watchdog
from edt_launch.launcher.control import ControlServer
from edt_launch.launcher.following import WATCH_INTERVAL
from edt_launch.launcher.rendezvous import Rendezvous
from edt_launch.launcher.reports import Reports, place_of
from edt_launch.launcher.shown import Complaints, discover
from edt_launch.membership import protocol
from edt_launch.membership.members import Limits, Membership
from edt_launch.membership.protocol import Worker
from edt_launch.membership.step import step
from edt_launch.wmla.running.workers import Workers

log = logging.getLogger(__name__)

TICK = 0.25
"""Seconds between two looks at the clock when nothing else happens."""

END_GRACE = 5.0
"""Seconds that a worker which was asked to end has before it is killed."""

STAND_IN_GRACE = 10.0
"""Seconds after a worker's end in which what stands for it among Horovod's processes has to end, too."""

FAILURES = 200
"""Looks in a row, some ten seconds, at which host discovery may fail before a job has started."""

PASSED_ON = (
    *("progress", "resumed"),
    *("restored", "checkpoint_skipped", "checkpointed", "checkpoint_failed"),
)
"""Messages of workers that become events as they are."""

PAUSED = "the job was told to pause"
"""Why workers leave that SIGUSR1 makes leave."""

CreateWorker = Callable[[Any, list[threading.Event]], tuple[int, float]]


@dataclass
class WorkerSlotInfo(SlotInfo):  # type: ignore[misc]
    """Horovod's description of a slot, with the variables that our workers need besides.

    `rank` is the worker's serial number: it prefixes the output, and the real rank is assigned later.
    """

    variables: dict[str, str] = field(default_factory=dict)


class Driver:
    """Carries out what `membership` decides. Used by Horovod's launcher in place of its ElasticDriver."""

    def __init__(
        self,
        address: str,
        discovery: Any,
        min_num_proc: int,
        max_num_proc: int,
        timeout: float | None,
        visible_devices: str | None,
        wmla: Workers | None = None,
    ) -> None:
        self._script = discovery._discovery_script
        self._timeout = timeout or 600.0
        # A simple queue, because a signal handler puts into it while the same thread gets from it.
        self._events: queue.SimpleQueue[protocol.Event | watchdog.Beat] = queue.SimpleQueue()
        self._wmla = wmla
        is_gang = wmla is not None and wmla.is_gang
        least, most = 1 if is_gang else min_num_proc, max_num_proc or sys.maxsize
        limits = Limits(least, most, _setting("EDT_READY_TIMEOUT"), self._timeout, is_gang)
        # Taken out, so that no worker inherits the variable.
        self._state = Membership(limits, next_id=int(os.environ.pop("EDT_FIRST_WORKER", "0")))
        self._token = secrets.token_hex(16)
        self._server = ControlServer(address, self._token, self._receive, self._hear_end)
        self._watch = watchdog.Watch(_setting("EDT_HANG_TIMEOUT"))
        self._address = address
        self._rendezvous: list[Rendezvous] = []
        self._pids: dict[int, int] = {}
        self._end_events: dict[int, threading.Event] = {}
        self._to_end: set[int] = set()
        self._complain = Complaints()
        self._visible_devices = visible_devices
        self._create_worker: CreateWorker | None = None
        self._reports = Reports.from_environment()

    # What Horovod's launcher calls, in this order.

    def wait_for_available_slots(self, min_num_proc: int, min_hosts: int = 1) -> DiscoveredHosts:
        """Wait until the discovery script shows enough slots.

        Raises:
            StartTimeoutError: it did not within the job's start timeout.
            StartError: it failed at `FAILURES` looks in a row.
        """
        deadline = time.monotonic() + self._timeout
        failures = 0
        while True:
            told: list[str] = []
            slots = discover(self._script, told.append).slots
            failures = failures + 1 if told else 0
            for text in told:
                self._complain(text)
            if failures == FAILURES:
                raise StartError(told[-1])
            hosts = list(dict.fromkeys(slot.host for slot in slots))
            if len(slots) >= min_num_proc and len(hosts) >= min_hosts:
                return DiscoveredHosts({h: sum(s.host == h for s in slots) for h in hosts}, hosts)
            if time.monotonic() > deadline:
                raise StartTimeoutError(len(slots), min_num_proc, self._timeout)
            time.sleep(WATCH_INTERVAL)

    def start(self, num_proc: int, create_worker: CreateWorker) -> None:
        """Begin to follow the discovery script; `create_worker` runs one worker to its end."""
        self._create_worker = create_worker
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: self._on_signal(received))
        signal.signal(signal.SIGUSR1, lambda received, _: self._events.put(protocol.Pause(PAUSED)))
        threading.Thread(target=self._end_with_parent, name="edt-parent", daemon=True).start()
        threading.Thread(target=self._follow_discovery, name="edt-discovery", daemon=True).start()

    def get_results(self) -> Results:
        """Run the job; returns when its last process has gone.

        Whatever goes wrong in here, no worker is left to itself.
        """
        try:
            self._run_job()
        except BaseException:
            for ended in list(self._end_events.values()):
                ended.set()
            raise
        return Results(None, {})

    @property
    def succeeded(self) -> bool:
        """Whether the job has ended well."""
        return self._state.finished and self._state.outcome is not None and self._state.outcome.succeeded

    def _run_job(self) -> None:
        while not self._state.finished:
            try:
                event: protocol.Event | watchdog.Beat = self._events.get(timeout=TICK)
            except queue.Empty:
                event = protocol.Tick()
            now = time.monotonic()
            self._watch = watchdog.tick(now, self._watch, self._state.workers)
            if isinstance(event, watchdog.Beat):
                self._watch = watchdog.observe(now, self._watch, event)
            else:
                self._take(now, event)
            for worker, reason in watchdog.overdue(now, self._watch, self._state.workers.values()):
                self._take(now, protocol.Hung(worker, reason))

    def _take(self, now: float, event: protocol.Event) -> None:
        if isinstance(event, protocol.Exited) and event.worker in self._state.workers:
            self._reports.send("released", **place_of(self._state.workers[event.worker]))
        self._state, actions = step(now, self._state, event)
        for action in actions:
            self._carry_out(action)
        if self._state.limits.is_gang and any(isinstance(action, protocol.Start) for action in actions):
            self._reports.gang(self._state.workers.values())
        if isinstance(event, protocol.Desired) and event.generation is not None:
            self._reports.send("following", generation=event.generation)

    def stop(self, error_message: str | None = None) -> None:
        """Close every server."""
        self._server.close()
        for rendezvous in self._rendezvous:
            rendezvous.close()

    # What happens.

    def _on_signal(self, number: int) -> None:
        self._abort(f"horovodrun has got {signal.Signals(number).name}")

    def _abort(self, reason: str) -> None:
        self._events.put(protocol.Abort(reason))

    def _end_with_parent(self) -> None:
        """The parent holds the other end of standard input and never writes: end of file is its death."""
        while os.read(sys.stdin.fileno(), 1):
            pass
        with open(os.devnull, "w") as nowhere:  # nobody reads on, and whoever writes must not fail on that
            for stream in (sys.stdout, sys.stderr):
                os.dup2(nowhere.fileno(), stream.fileno())
        self._abort("edt-launch is gone")

    def _follow_discovery(self) -> None:
        before: tuple[protocol.Slot, ...] = ()
        for shown in following.changes(self._script, self._complain):
            if shown.slots != before:
                self._reports.send("desired", slots=len(shown.slots))
            before = shown.slots
            slots = shown.slots if self._wmla is None else self._wmla.slots(shown.slots)
            self._events.put(protocol.Desired(slots, shown.generation))

    def _receive(self, worker: int, message: dict[str, Any]) -> None:
        kind = message.pop("type")
        if kind == "hello":
            self._pids[worker] = int(message["pid"])
            if worker in self._to_end:
                self._server.send(worker, "end")  # it was not there yet when it was told
        elif kind == "door":
            self._reports.send("ready", worker=worker, pid=self._pids[worker])
            self._events.put(protocol.AtDoor(worker, int(message["progress"])))
        elif kind == "synced":
            self._events.put(protocol.Synced(worker))
        elif kind == "done":
            self._events.put(protocol.Done(worker))
        elif kind == "leaving":
            self._events.put(protocol.Leaving(worker, str(message["reason"])))
        elif kind == "beat":
            self._events.put(watchdog.Beat.from_message(worker, message))
        elif kind in PASSED_ON:
            self._reports.send(kind, **message)
        elif kind == "standby":
            self._reports.send("standby", worker=worker, **message)
        elif kind == "warm":
            self._reports.send("warm_server", **message)

    def _hear_end(self, worker: int) -> None:
        """A worker's connection has ended, and so will the worker. Horovod tells, if nothing is stopped."""
        _later(STAND_IN_GRACE, lambda: self._end_stand_in(worker))

    # What to do.

    def _carry_out(self, action: protocol.Action) -> None:
        log.info("%s", action)
        match action:
            case protocol.Start(worker):
                self._start(worker)
            case protocol.Stop(workers, generation):
                self._reports.send("stopping", generation=generation)
                for worker_id in workers:
                    self._server.send(worker_id, "stop", generation=generation)
            case protocol.Assign():
                self._assign(action)
            case protocol.Dismiss(worker_id, saves):
                self._server.send(worker_id, "leave", saves=saves)
            case protocol.Terminate(worker_id, at_once):
                self._terminate(worker_id, at_once)
            case protocol.Cut(workers, generation):
                self._cut(workers, generation)
            case _:
                self._reports.tell(action)

    def _start(self, worker: Worker) -> None:
        slot = worker.slot
        self._reports.started(worker)
        variables = {
            "EDT_COORDINATOR": self._server.address,
            "EDT_TOKEN": self._token,
            "EDT_WORKER": str(worker.id),
            "EDT_SLOT": str(slot.index),
            "EDT_MIN_NP": str(self._state.limits.min_size),
            "EDT_MAX_NP": str(self._state.limits.max_size),
            "EDT_LOCAL_NP": str(self._most_on(slot.host)),
        }
        if slot.device is not None:
            variables |= {"EDT_DEVICE": slot.device, "CUDA_VISIBLE_DEVICES": slot.device}
        elif self._visible_devices is not None:
            variables["CUDA_VISIBLE_DEVICES"] = self._visible_devices
        if self._wmla is not None:
            variables |= self._wmla.variables(worker, self._state.desired)
        info = WorkerSlotInfo(slot.host, worker.id, slot.index, 0, 1, 1, 1, variables)
        ended = self._end_events[worker.id] = threading.Event()
        threading.Thread(
            target=self._run, args=(info, ended), name=f"edt-worker-{worker.id}", daemon=True
        ).start()

    def _most_on(self, host: str) -> int:
        """How many workers may have to share the host."""
        hosts = [slot.host for slot in self._state.desired]
        return self._state.limits.max_size if set(hosts) == {host} else max(1, hosts.count(host))

    def _run(self, info: WorkerSlotInfo, ended: threading.Event) -> None:
        assert self._create_worker is not None
        exit_code = 1
        try:
            exit_code, _ = self._create_worker(info, [ended])
        finally:
            del self._end_events[info.rank]
            self._events.put(protocol.Exited(info.rank, exit_code))

    def _terminate(self, worker: int, at_once: bool) -> None:
        """Ask a connected worker to end itself, which is quick, and make sure of it after a grace."""
        self._reports.send("ending", worker=worker)
        self._to_end.add(worker)
        is_told = self._server.send(worker, "end")
        if at_once:
            _later(0, lambda: processes.kill(self._tree_of(worker)))
        grace = END_GRACE if is_told and not at_once else 0.0
        ended = self._end_events.get(worker)
        if ended is None:
            return  # its exit is on the way
        _later(grace, ended.set)
        # Horovod misses a process that its shell starts at this very moment.
        _later(grace + END_GRACE, lambda: processes.kill(self._processes_of(worker)))

    def _end_stand_in(self, worker: int) -> None:
        ended = self._end_events.get(worker)
        if ended is None or self._tree_of(worker):  # a worker that is there is the watchdog's business
            return
        log.info("worker %d has gone, but not what stands for it: killed", worker)
        processes.kill(self._processes_of(worker))
        ended.set()

    def _tree_of(self, worker: int) -> set[psutil.Process]:
        """A worker's process and its children, if it runs on this machine."""
        ours = {"EDT_TOKEN": self._token}
        found = processes.tree(self._pids[worker]) if worker in self._pids else set()
        return found if any(ours.items() <= processes.environment(p).items() for p in found) else set()

    def _processes_of(self, worker: int) -> set[psutil.Process]:
        """What is left of a worker on this machine."""
        if worker not in self._end_events:
            return set()
        return processes.having({"EDT_TOKEN": self._token, "EDT_WORKER": str(worker)})

    def _assign(self, action: protocol.Assign) -> None:
        # Where Horovod looks its place up, besides the variables that the worker sets.
        places = {
            f"rank_and_size/{at.host}:{at.local_rank}": ",".join(
                map(str, (at.rank, at.size, at.local_rank, at.local_size, at.cross_rank, at.cross_size))
            ).encode()
            for at in action.places
        }
        rendezvous = Rendezvous(self._address, places)
        self._reports.send(
            "world",
            generation=action.generation,
            size=len(action.places),
            previous_size=action.previous_size,
            ranks={str(at.worker): at.rank for at in action.places},
            reason=action.reason,
        )
        for at in action.places:
            content = asdict(at) | {"generation": action.generation, "port": rendezvous.port}
            self._server.send(content.pop("worker"), "assign", **content)
        self._rendezvous.append(rendezvous)
        while len(self._rendezvous) > 2:  # a late member of the last generation may still be asking
            self._rendezvous.pop(0).close()

    def _cut(self, workers: tuple[int, ...], generation: int) -> None:
        """Let nobody wait for a member that is lost, neither here nor in a collective."""
        if self._rendezvous:
            self._rendezvous[-1].void()
        for worker in workers:
            self._server.send(worker, "cut", generation=generation)


def _setting(name: str) -> float | None:
    """Seconds that edt-launch was told; None if it is to be learned."""
    setting = os.environ.get(name)
    return float(setting) if setting else None


def _later(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
