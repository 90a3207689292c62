"""One job from its first allocation to its last process: the loop around all the decisions."""

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from edt_launch import discovery, events, processes
from edt_launch.allocation import Allocation, render, write_atomically
from edt_launch.child import HOROVODRUN, Remote, command, environment
from edt_launch.ending import CODES, Ending, Step
from edt_launch.errors import ExitCode, StartError, StartTimeoutError, UsageError
from edt_launch.failures import NOT_ELASTIC, Failures, describe, looks_like_plain_horovod
from edt_launch.follower import Accepted, Follower, Limits, Rejected
from edt_launch.network import HostChecker
from edt_launch.output import Demultiplexer, Line, Logs, Ranks
from edt_launch.run_dir import RunDir
from edt_launch.status import Status
from edt_launch.view import View
from edt_launch.view import describe as describe_event

TICK = 0.05
"""Seconds between two looks at the allocation file, the signals and the clock."""

CHUNK = 2**16
"""Bytes read at once."""

LEFTOVER_GRACE = 2.0
"""Seconds that processes have to follow horovodrun into its end before they are killed."""


@dataclass(frozen=True)
class Plan:
    """What to run and where.

    Attributes:
        program: command that each worker runs.
        limits: bounds on the number of workers.
        paths: the job's output directory.
        allocation: hosts that never change; None to follow a file.
        follow: allocation file to follow; None for hosts that never change.
        interface: network interface over which the workers talk; None to choose one.
        remote: how other hosts are reached.
        start_timeout: seconds to wait for enough slots.
        hang_timeout: seconds after which a worker that does not get on is killed; 0: never, None: learned.
        verbose: show what horovodrun itself says.
        variables: environment variables that the job gets besides our own.
    """

    program: Sequence[str]
    limits: Limits
    paths: RunDir
    allocation: Allocation | None = None
    follow: Path | None = None
    interface: str | None = None
    remote: Remote = field(default_factory=Remote)
    start_timeout: float = 600.0
    hang_timeout: float | None = None
    verbose: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a job ended: the exit code, and the last thing to tell the user (may be empty)."""

    exit_code: ExitCode
    message: str = ""


@contextlib.contextmanager
def received_signals() -> Iterator[list[int]]:
    """A list to which the signals that end a job are appended as they come."""
    received: list[int] = []
    previous = {n: signal.signal(n, lambda number, _: received.append(number)) for n in CODES}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run(plan: Plan, view: View, signals: list[int], horovodrun: Sequence[str] = HOROVODRUN) -> Outcome:
    """Run a job to its end. No process of it is left on this machine, whatever happens.

    Args:
        plan: what to run.
        view: shows it.
        signals: grows by the signals that this process receives; see `received_signals`.
        horovodrun: command that is horovodrun with our driver, or behaves like it.

    Raises:
        UsageError: a host, the interface or the output directory is wrong.
        StartError: there were not enough slots in time, or horovodrun cannot be executed.
    """
    with plan.paths.opened():
        log = events.EventLog(plan.paths.events)
        try:
            return _Job(plan, view, signals, log).run(horovodrun)
        finally:
            log.close()


class _Job:
    def __init__(self, plan: Plan, view: View, signals: list[int], log: events.EventLog) -> None:
        self._plan = plan
        self._view = view
        self._signals = signals
        self._log = log
        self._hosts = HostChecker()
        self._follower = Follower(plan.follow, plan.limits, self._hosts) if plan.follow else None
        self._logs = Logs(plan.paths)
        self._ranks = Ranks()
        self._status = Status()
        self._failures = Failures()
        self._ending = Ending()
        self._name = uuid.uuid4().hex
        self._seen: set[psutil.Process] = set()
        self._has_started = False
        self._has_come_to_the_door = False
        self._events_pipe = -1
        self._being_ended: set[int] = set()

    def run(self, horovodrun: Sequence[str]) -> Outcome:
        try:
            allocation = self._first_allocation()
            if allocation is None:
                return self._conclude(None)
            interface = self._hosts.choose(
                self._plan.interface, (h.host for h in allocation.hosts if h.slots)
            )
            self._check_hosts(allocation)
            self._apply(allocation, first=True)
            discovery.write(self._plan.paths.discovery_script, self._plan.paths.allocation)
            exit_code = self._supervise(interface, horovodrun)
        finally:
            self._view.close(self._status)
            self._logs.close()
        return self._conclude(exit_code)

    # The allocation.

    def _first_allocation(self) -> Allocation | None:
        """What the job starts with; None if it is to end before."""
        if self._follower is None:
            return self._plan.allocation
        deadline = time.monotonic() + self._plan.start_timeout
        while True:
            now = time.monotonic()
            self._take_signals(now)
            if self._ending.first is not None:
                return None
            match self._follower.poll(now):
                case Accepted(allocation):
                    return allocation
                case Rejected(reason):
                    self._note(events.new("allocation_rejected", reason=reason))
            if now >= deadline:
                raise StartTimeoutError(
                    0, self._plan.limits.min_np, self._plan.start_timeout, self._follower.rejection
                )
            self._view.refresh(time.time(), self._status)
            time.sleep(TICK)

    def _check_hosts(self, allocation: Allocation) -> None:
        problems = (self._hosts(host.host) for host in allocation.hosts if host.slots)
        problem = next((problem for problem in problems if problem is not None), None)
        if problem is not None:
            raise UsageError(problem)
        here = os.getcwd()
        if here != shlex.quote(here) and any(self._hosts.is_remote(host.host) for host in allocation.hosts):
            raise UsageError(
                f"working directory {here!r}: Horovod cannot enter it on other hosts, because a shell would "
                "take some of its characters for its own; start the job in a directory with a plain name"
            )

    def _apply(self, allocation: Allocation, first: bool = False) -> None:
        write_atomically(self._plan.paths.allocation, render(allocation))
        hosts = [asdict(host) for host in allocation.hosts]
        self._note(
            events.new(
                "allocation_accepted",
                generation=allocation.generation,
                slots=allocation.slots,
                hosts=hosts,
                first=first,
            )
        )

    def _follow(self, now: float) -> None:
        match self._follower.poll(now) if self._follower is not None else None:
            case Accepted(allocation):
                self._apply(allocation)
            case Rejected(reason):
                self._note(events.new("allocation_rejected", reason=reason))

    # While it runs.

    def _supervise(self, interface: str, horovodrun: Sequence[str]) -> int:
        """Run horovodrun to its end; returns its exit code, negative for a signal."""
        plan = self._plan
        words = command(
            plan.program, plan.limits, interface, plan.paths, plan.start_timeout, plan.remote, horovodrun
        )
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            try:
                child = subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE,  # its end tells horovodrun that we are gone
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environment(
                        os.environ | plan.variables, plan.paths, writing, self._name, plan.hang_timeout
                    ),
                    pass_fds=[writing],
                    start_new_session=True,
                    bufsize=0,
                )
            except OSError as error:
                raise StartError(f"cannot run {words[0]}: {error.strerror}") from None
            finally:
                os.close(writing)
            with child:
                try:
                    self._note(
                        events.new("launched", command=list(plan.program), pid=child.pid, interface=interface)
                    )
                    self._attend(child, pipe.fileno())
                finally:
                    self._clean_up(child)
            return child.returncode

    def _attend(self, child: subprocess.Popen[bytes], events_pipe: int) -> None:
        self._events_pipe = events_pipe
        assert child.stdout is not None
        assert child.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe, consume in (
                (events_pipe, self._events_consumer()),
                (child.stdout.fileno(), self._output_consumer("stdout")),
                (child.stderr.fileno(), self._output_consumer("stderr")),
            ):
                os.set_blocking(pipe, False)
                selector.register(pipe, selectors.EVENT_READ, consume)
            while child.poll() is None:
                now = time.monotonic()
                self._read(selector, now, TICK)
                self._take_signals(now)
                self._follow(now)
                self._act(child, now)
                self._logs.flush()
                self._view.refresh(time.time(), self._status)
            self._sweep(child)
            while self._read(selector, time.monotonic(), 0):
                pass
            for key in list(selector.get_map().values()):
                key.data(time.monotonic(), b"")

    def _read(self, selector: selectors.BaseSelector, now: float, timeout: float) -> bool:
        """Take in what the pipes have; returns whether there was anything."""
        if not selector.get_map():
            time.sleep(timeout)
            return False
        ready = [key for key, _ in selector.select(timeout)]
        # Events first: they say whose the lines are.
        for key in sorted(ready, key=lambda key: key.fd != self._events_pipe):
            try:
                data = os.read(key.fd, CHUNK)
            except BlockingIOError:
                continue
            if not data:
                selector.unregister(key.fd)
            key.data(now, data)
        return bool(ready)

    def _events_consumer(self) -> Callable[[float, bytes], None]:
        stream = events.EventStream()

        def consume(now: float, data: bytes) -> None:
            for event in stream.feed(data):
                if isinstance(event, str):
                    self._show(Line(None, "stderr", f"not an event: {event}"))
                else:
                    self._note(event)
                    if event["event"] == "finished":
                        self._ending = self._ending.finished(now)

        return consume

    def _output_consumer(self, stream: str) -> Callable[[float, bytes], None]:
        demultiplexer = Demultiplexer(stream, self._ranks)

        def consume(now: float, data: bytes) -> None:
            for line in demultiplexer.feed(now, data) if data else demultiplexer.close():
                self._show(line)

        return consume

    def _note(self, event: events.Event) -> None:
        """An event has happened: keep it, take it in, and tell the user if it matters."""
        self._log.write(event)
        self._ranks.observe(event)
        self._status = self._status.observe(event)
        self._failures = self._failures.observe(event)
        if event["event"] == "ending":
            self._being_ended.add(event["worker"])
        self._has_started = self._has_started or event["event"] == "started"
        self._has_come_to_the_door = self._has_come_to_the_door or event["event"] == "ready"
        message = describe_event(event, self._status)
        if message is not None and self._ending.first is None:
            self._view.message(message)

    def _show(self, line: Line) -> None:
        label = None if line.worker is None else self._ranks.label(line.worker)
        self._logs.write(line, label)
        if line.worker in self._being_ended:
            return  # what a shell says of the end that we have ordered is no news
        if label is not None:
            self._view.line(line, label)
        elif self._plan.verbose:
            self._view.line(line, "horovodrun")

    # The end.

    def _take_signals(self, now: float) -> None:
        while self._signals:
            self._ending = self._ending.signalled(now, self._signals.pop(0))

    def _act(self, child: subprocess.Popen[bytes], now: float) -> None:
        self._ending, step = self._ending.decide(now)
        match step:
            case Step.TERMINATE:
                self._view.message("ending all workers; Ctrl-C kills them at once")
                self._seen |= processes.tree(child.pid)
                child.terminate()
            case Step.KILL:
                count = processes.kill_job(child.pid, self._name, self._seen)
                self._view.message(f"{count} processes had to be killed")

    def _sweep(self, child: subprocess.Popen[bytes]) -> None:
        """Horovodrun has gone: so will what is left of it."""
        left = self._seen | processes.marked(self._name)
        left = processes.wait_until_gone(left, LEFTOVER_GRACE)
        count = processes.kill_job(None, self._name, left)
        if count:
            self._view.message(f"{count} processes that horovodrun had left behind were killed")

    def _clean_up(self, child: subprocess.Popen[bytes]) -> None:
        """Whatever has happened, also to ourselves: nothing of the job stays."""
        if child.poll() is None:
            processes.kill_job(child.pid, self._name, self._seen)

    def _conclude(self, exit_code: int | None) -> Outcome:
        """How the job ended, given horovodrun's exit code (None if it was never started)."""
        if self._ending.exit_code is not None:
            return Outcome(self._ending.exit_code, f"edt-launch: ended by {_signal_name(self._ending.first)}")
        if self._status.exit_code == 0 or (exit_code == 0 and self._status.exit_code is None):
            return Outcome(ExitCode.SUCCESS)
        how = _how_it_ended(exit_code)
        log = self._plan.paths.horovodrun_log
        if not self._has_started or exit_code == ExitCode.NOT_STARTED:
            said = "\n".join(f"  | {line}" for line in self._logs.last_lines(None))
            return Outcome(
                ExitCode.NOT_STARTED, f"edt-launch: the job could not start: {how}\n{said}\nlog: {log}"
            )
        head = f"edt-launch: the job failed: {self._status.reason or how}"
        first = self._failures.first(self._logs.last_lines)
        if first is None:
            return Outcome(ExitCode.JOB_FAILED, f"{head}\nlog: {log}")
        path = self._plan.paths.rank_log(self._ranks.label(first.worker))
        lines = self._logs.last_lines(first.worker)
        text = describe(first, lines, path)
        if not self._has_come_to_the_door and looks_like_plain_horovod(lines):
            head = f"{head}\n{NOT_ELASTIC}"
        return Outcome(ExitCode.JOB_FAILED, f"{head}\n{text}")


def _signal_name(number: int | None) -> str:
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number or 0).name


def _how_it_ended(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"horovodrun was killed by {signal.Signals(-exit_code).name}"
    return f"horovodrun ended with exit code {exit_code}"
