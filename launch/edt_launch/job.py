"""One job from its first allocation to its last process: the loop around all the decisions."""

import contextlib
import json
import os
import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import psutil

from edt_launch import checkpoints, discovery, events, restarts
from edt_launch.allocation import Allocation, render, write_atomically
from edt_launch.child import HOROVODRUN, command, environment
from edt_launch.course import Course
from edt_launch.ending import CODES, PAUSE_SIGNAL, Ending, Step, signal_name
from edt_launch.errors import EdtLaunchError, ExitCode, StartTimeoutError, UsageError
from edt_launch.failures import NOT_ELASTIC, describe, looks_like_plain_horovod
from edt_launch.follower import Accepted, Follower, Rejected
from edt_launch.forkable import attached
from edt_launch.network import HostChecker
from edt_launch.output import KEPT_LINES, Line, Logs, Ranks, is_for_the_log
from edt_launch.phases import Phases
from edt_launch.plan import Outcome, Plan
from edt_launch.status import Status
from edt_launch.supervise import TICK, LeftBehind, Supervised, Told
from edt_launch.telling import describe as describe_event
from edt_launch.view import View
from edt_launch.watching import watching


@contextlib.contextmanager
def received_signals() -> Iterator[list[int]]:
    """A list to which the signals that end or pause a job are appended as they come."""
    received: list[int] = []
    numbers = (*CODES, PAUSE_SIGNAL)
    previous = {n: signal.signal(n, lambda number, _: received.append(number)) for n in numbers}
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
        log = events.EventLog(plan.paths.events, view.message)
        me = {"pid": os.getpid(), "started": psutil.Process().create_time(), **asdict(plan.limits)}
        outcome = Outcome(ExitCode.INTERNAL)
        try:
            write_atomically(plan.paths.launcher, json.dumps(me) + "\n")
            log.write(events.new("begun", **me))
            outcome = _Job(plan, view, signals, log).run(horovodrun)
        except EdtLaunchError as error:
            outcome = Outcome(error.exit_code, str(error))
            raise
        finally:
            log.write(events.new("ended", exit_code=int(outcome.exit_code), message=outcome.message))
            log.close()
    return outcome


class _Job:
    def __init__(self, plan: Plan, view: View, signals: list[int], log: events.EventLog) -> None:
        self._plan = plan
        self._view = view
        self._signals = signals
        self._log = log
        self._hosts = HostChecker()
        self._follower = Follower(plan.follow, plan.limits, self._hosts) if plan.follow else None
        self._logs = Logs(plan.paths, view.message)
        self._ranks = Ranks()
        self._status = Status()
        self._phases = Phases()
        self._course = Course()
        self._ending = Ending()
        self._restarts = 0
        self._has_left = False
        self._allocation: Allocation | None = None
        self._unapplied: Accepted | None = None
        self._failed_to_apply: int | None = None

    def run(self, horovodrun: Sequence[str]) -> Outcome:
        try:
            allocation = self._first_allocation()
            if allocation is None:
                return self._conclude(None)
            self._check_hosts(allocation)
            self._apply(allocation, first=True)
            discovery.write(self._plan.paths.discovery_script, self._plan.paths.allocation)
            self._tell_where_it_goes_on()
            exit_code = self._run_to_the_end(horovodrun)
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
            if self._ending.first is not None or self._ending.is_pausing:
                return None
            match self._follower.poll(now):
                case Accepted(allocation=allocation):
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

    def _apply(self, allocation: Allocation, first: bool = False, changed: float | None = None) -> None:
        write_atomically(self._plan.paths.allocation, render(allocation))
        self._allocation = allocation
        hosts = [asdict(host) for host in allocation.hosts]
        self._note(
            events.new(
                "allocation_accepted",
                generation=allocation.generation,
                slots=allocation.slots,
                hosts=hosts,
                first=first,
                changed=changed,
            )
        )

    def _follow(self, now: float) -> None:
        match self._follower.poll(now) if self._follower is not None else None:
            case Accepted() as accepted:
                self._unapplied = accepted
            case Rejected(reason):
                self._note(events.new("allocation_rejected", reason=reason))
        if self._unapplied is None:
            return
        try:
            self._apply(self._unapplied.allocation, changed=self._unapplied.changed)
        except OSError as error:  # a full disk, say: the job goes on, and this is tried again
            if error.errno != self._failed_to_apply:
                path = self._plan.paths.allocation
                reason = f"{path} cannot be written: {error.strerror}; it is tried again"
                self._note(events.new("allocation_rejected", reason=reason))
            self._failed_to_apply = error.errno
        else:
            self._unapplied = self._failed_to_apply = None

    # While it runs.

    def _tell_where_it_goes_on(self) -> None:
        folder = self._plan.paths.checkpoint
        if checkpoints.newest(folder) is not None:  # the workers find out which of them is whole, and fits
            self._view.message(
                f"found checkpoints in {folder} to go on from; for a new training name another --output-dir"
            )

    def _run_to_the_end(self, horovodrun: Sequence[str]) -> int:
        """Run horovodrun, again where that helps; returns its last exit code, negative for a signal."""
        while True:
            exit_code = self._run_once(horovodrun)
            self._take_signals(time.monotonic())
            verdict = restarts.decide(self._end(exit_code), self._restarts, self._plan.max_restarts)
            self._has_left = isinstance(verdict, restarts.Leave)
            if not isinstance(verdict, restarts.Restart):
                return exit_code
            self._restarts += 1
            count = {"restart": self._restarts, "of": self._plan.max_restarts}
            has_checkpoint = checkpoints.newest(self._plan.paths.checkpoint) is not None
            self._note(events.new("restarting", **asdict(verdict), **count, has_checkpoint=has_checkpoint))
            if self._is_told_to_end_within(verdict.delay):
                self._has_left = self._ending.is_pausing
                return exit_code

    def _is_told_to_end_within(self, seconds: float) -> bool:
        """Wait so long, or until the allocation changes; whether a signal has come that ends the job."""
        until, before = time.monotonic() + seconds, self._allocation
        while (now := time.monotonic()) < until and self._allocation == before:
            self._take_signals(now)
            if self._ending.first is not None or self._ending.is_pausing:
                return True
            self._follow(now)
            self._view.refresh(time.time(), self._status)
            time.sleep(TICK)
        return False

    def _run_once(self, horovodrun: Sequence[str]) -> int:
        plan = self._plan
        interface = self._interface()
        program = attached(plan.program) if plan.warm_start else plan.program
        words = command(
            program, plan.limits, interface, plan.paths, plan.start_timeout, plan.remote, horovodrun
        )
        self._course = Course(next_worker=self._course.next_worker)
        self._ending = Ending()
        self._logs.begin()
        with (
            watching(plan.follow) as watch,
            Supervised(words, self._environment(), self._ranks, watch) as child,
        ):
            self._note(events.new("launched", command=list(plan.program), pid=child.pid, interface=interface))
            for happening in child.happenings():
                match happening:
                    case Told(event):
                        self._note(event)
                        if event["event"] == "finished":
                            self._ending = self._ending.finished(time.monotonic())
                    case Line():
                        self._show(happening)
                    case LeftBehind(count):
                        self._view.message(f"{count} processes that horovodrun had left behind were killed")
                    case _:
                        self._tick(child)
            return child.exit_code

    def _environment(self) -> dict[str, str]:
        plan = self._plan
        return environment(
            os.environ | plan.variables,
            plan.paths,
            self._course.next_worker,
            plan.checkpoint_interval,
            plan.keep_checkpoints,
            plan.hang_timeout,
            plan.ready_timeout,
        )

    def _interface(self) -> str:
        assert self._allocation is not None
        return self._hosts.choose(self._plan.interface, (h.host for h in self._allocation.hosts if h.slots))

    def _tick(self, child: Supervised) -> None:
        now = time.monotonic()
        self._take_signals(now)
        self._follow(now)
        self._act(child, now)
        self._logs.flush()
        self._view.refresh(time.time(), self._status)

    def _note(self, event: events.Event) -> None:
        """An event has happened: keep it, take it in, and tell the user if it matters."""
        self._phases, event = self._phases.observe(event)
        self._log.write(event)
        self._ranks.observe(event)
        self._status = self._status.observe(event)
        self._course = self._course.observe(event)
        message = describe_event(event)
        if message is not None and self._ending.first is None:
            self._view.message(message)

    def _show(self, line: Line) -> None:
        label = None if line.worker is None else self._ranks.label(line.worker)
        self._logs.write(line, label)
        if line.worker in self._course.being_ended:
            return  # what a shell says of the end that we have ordered is no news
        if is_for_the_log(line) and not self._plan.verbose:
            return
        if label is not None:
            self._view.line(line, label)
        elif self._plan.verbose:
            self._view.line(line, "horovodrun")

    # The end.

    def _take_signals(self, now: float) -> None:
        while self._signals:
            self._ending = self._ending.signalled(now, self._signals.pop(0))

    def _act(self, child: Supervised, now: float) -> None:
        self._ending, step = self._ending.decide(now, has_workers=self._course.has_started)
        match step:
            case Step.TERMINATE:
                self._view.message("ending all workers; Ctrl-C kills them at once")
                child.terminate()
            case Step.PAUSE:
                self._view.message(
                    "all workers are to leave, their state is saved; SIGTERM ends them at once"
                )
                child.pause()
            case Step.KILL:
                self._view.message(f"{child.kill()} processes had to be killed")

    def _end(self, exit_code: int) -> restarts.End:
        """How the last run has ended."""
        course = self._course
        first = course.failures.first(self._logs.last_lines) if course.is_fatal else None
        return restarts.End(
            succeeded=self._has_succeeded(exit_code),
            is_wanted=self._ending.first is not None,
            is_pausing=self._ending.is_pausing,
            has_trained=course.has_trained,
            has_checkpointed=course.has_checkpointed,
            has_returned=course.has_returned,
            is_over=self._status.exit_code is not None,
            ended_by=first,
            is_lost=first is not None and restarts.is_loss(first, self._hosts.is_remote(first.host)),
            how=_how_it_ended(exit_code),
            has_left=course.has_left,
            is_aborted=course.is_aborted,
            reason=self._status.reason,
            exit_code=exit_code,
        )

    def _how_to_go_on(self) -> str:
        if checkpoints.newest(self._plan.paths.checkpoint) is None:
            return "there is no checkpoint: started again, the job begins anew"
        return f"start it again with --output-dir {self._plan.paths.root} to go on"

    def _has_succeeded(self, exit_code: int | None) -> bool:
        return self._status.exit_code == 0 or (exit_code == 0 and self._status.exit_code is None)

    def _conclude(self, exit_code: int | None) -> Outcome:
        """How the job ended, given horovodrun's exit code (None if it was never started)."""
        if self._ending.exit_code is not None:
            return Outcome(self._ending.exit_code, f"edt-launch: ended by {signal_name(self._ending.first)}")
        if self._has_left or (exit_code is None and self._ending.is_pausing):
            return Outcome(ExitCode.LEFT, f"edt-launch: all workers have left; {self._how_to_go_on()}")
        if self._has_succeeded(exit_code):
            return Outcome(ExitCode.SUCCESS)
        how = _how_it_ended(exit_code)
        log = self._plan.paths.horovodrun_log
        has_begun = self._course.has_started or self._restarts > 0
        if not has_begun or exit_code == ExitCode.NOT_STARTED:
            said = "\n".join(f"  | {line}" for line in self._logs.last_lines(None))
            return Outcome(
                ExitCode.NOT_STARTED, f"edt-launch: the job could not start: {how}\n{said}\nlog: {log}"
            )
        head = f"edt-launch: the job failed{_after(self._restarts)}: {self._status.reason or how}"
        first = self._course.failures.first(self._logs.last_lines)
        if first is None:
            return Outcome(ExitCode.JOB_FAILED, f"{head}\nlog: {log}")
        path = self._plan.paths.rank_log(self._ranks.label(first.worker))
        lines = self._logs.last_lines(first.worker)
        text = describe(first, lines, path)
        if not self._course.has_come_to_the_door and looks_like_plain_horovod(
            self._logs.last_lines(first.worker, KEPT_LINES)
        ):
            head = f"{head}\n{NOT_ELASTIC}"
        return Outcome(ExitCode.JOB_FAILED, f"{head}\n{text}")


def _after(restarts: int) -> str:
    return f" after {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""


def _how_it_ended(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"horovodrun was killed by {signal.Signals(-exit_code).name}"
    return f"horovodrun ended with exit code {exit_code}"
