"""One training from its first worker to its last: the loop around all the decisions."""

import contextlib
import math
import os
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from edt_launch.agent.protocol import Setup
from edt_launch.agent.system.processes import number
from edt_launch.cluster.allocation import Allocation
from edt_launch.cluster.network import HostChecker
from edt_launch.core.errors import ExitCode, StartTimeoutError
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.files.file_watch import watching
from edt_launch.core.history import events
from edt_launch.core.history.event_log import stamped
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.cause import cause_of
from edt_launch.launcher.driver.driver import DriverSettings
from edt_launch.launcher.environment import environment
from edt_launch.launcher.horovodrun.command import DISCOVER
from edt_launch.launcher.hosts import checkpoints
from edt_launch.launcher.hosts.host_files import HostFiles
from edt_launch.launcher.plan import JobOutcome, Plan
from edt_launch.launcher.program import LaunchedJob, Workers
from edt_launch.launcher.run_summary import describe, describe_exits
from edt_launch.launcher.runs import restarts
from edt_launch.launcher.runs.job_monitor import JobMonitor
from edt_launch.launcher.runs.job_runs import JobRuns
from edt_launch.launcher.runs.run import TICK, DriverRun, LeftBehind, Tick
from edt_launch.launcher.termination import GRACE, Ending, Listen, Step, signal_name
from edt_launch.launcher.transports.choice import Transports
from edt_launch.launcher.view.output import KEPT_LINES, Line
from edt_launch.membership import members
from edt_launch.membership.policy import POLICIES
from edt_launch.membership.protocol import Resize, Worker

RESTARTS = 3
"""How often a job whose workers were all lost is started again, unless the user says so."""

DEFAULT_TIMEOUT = 600.0
"""Seconds for which survivors wait for others where the user has no time to wait for the first ones."""


@dataclass(frozen=True)
class Supervision:
    """What looks after a job while its program runs."""

    monitor: JobMonitor
    allocations: Allocations
    hosts: HostChecker
    transports: Transports
    listen: Listen
    runs: JobRuns
    given_up: dict[int, Worker] = field(default_factory=dict)
    """Workers of the runs so far whose processes may be there still."""


@contextlib.contextmanager
def supervised(job: LaunchedJob) -> Iterator[Supervision]:
    """Look after a job; in the end its view shows the last of it, and its logs are complete."""
    plan = job.plan
    hosts = HostChecker(interface=plan.options.network_interface)
    check = hosts if plan.source is None else hosts.check_anew
    with (
        contextlib.closing(JobMonitor(plan, job.view, job.log)) as monitor,
        contextlib.closing(
            Transports(plan.options, os.environ, hosts.is_remote, plan.transports)
        ) as transports,
    ):
        hosts.given = transports.address  # before the thread that follows a source asks for the first time
        with contextlib.closing(
            Allocations(plan, monitor.note, lambda host: transports.problem(host) or check(host.host))
        ) as allocations:
            runs = JobRuns(plan.paths.job_run, monitor.message)
            yield Supervision(monitor, allocations, hosts, transports, job.listen, runs)


def run(job: LaunchedJob, workers: Workers) -> JobOutcome:
    """Run a job that is one training; what it raises is what `job.run` raises."""
    with supervised(job) as supervision:
        return Elastic(job.plan, workers, supervision).run()


class Elastic:
    """Runs workers, again where that helps, until the training is over or told to end.

    `attend` is called at every tick: whether somebody still needs what the job does.
    """

    def __init__(
        self,
        plan: Plan,
        workers: Workers,
        supervision: Supervision,
        attend: Callable[[], bool] = lambda: True,
    ) -> None:
        self._plan = plan
        self._workers = workers
        workers.ports = plan.options.ports
        self._monitor = supervision.monitor
        self._allocations = supervision.allocations
        self._hosts = supervision.hosts
        self._transports = supervision.transports
        self._take_signals = supervision.listen
        self._runs = supervision.runs
        self._given_up = supervision.given_up
        self._attend = attend
        given = RESTARTS if plan.options.max_restarts is None else plan.options.max_restarts
        self._max_restarts = given if POLICIES[workers.resize].restarts else 0
        self._restarts = 0
        self._ahead: DriverRun | None = None
        """The first run, if its agents have been started ahead."""
        self._applied: Allocation | None = None
        """What the run under way knows of."""
        self._has_left = False
        self.ending = Ending()
        """How far the end is that somebody has asked for."""

    def start_ahead(self) -> None:
        """Start the agents of the first run, whose warm servers import what its workers need; see `close`.

        Does nothing if they run, or if there is no allocation yet. What it raises is what `job.run` raises.
        """
        if self._ahead is None and self._allocations.current is not None:
            self._ahead = self._new_run()
            self._ahead.open(self._allocations.current)

    def close(self) -> None:
        """End agents that were started ahead, and were not needed."""
        if self._ahead is not None:
            with self._ahead:
                self._ahead = None

    def run(self) -> JobOutcome:
        """Run the job; what it raises is what `job.run` raises."""
        if self._has_slots():
            write_discovery_script(self._plan.paths)
            self._announce_checkpoints()
            self._run_to_the_end()
        else:
            self._has_left = self.ending.is_pausing
        return self._conclude()

    def _has_slots(self) -> bool:
        timeout = self._plan.options.start_timeout
        if self._is_told_to_end_within(0.0 if self._allocations.current is not None else timeout):
            return False
        if self._allocations.current is None:
            raise StartTimeoutError(0, self._plan.limits.min_np, timeout, self._allocations.rejection)
        return True

    def _is_told_to_end_within(self, seconds: float) -> bool:
        """Wait so long, or until the allocation changes; whether the job is to end."""
        until, before = time.monotonic() + seconds, self._allocations.current
        while True:
            now = time.monotonic()
            self._listen(now)
            if self.ending.is_wanted or self.ending.is_pausing:
                return True
            self._allocations.follow(now)
            if self._allocations.current != before or now >= until:
                return False
            self._monitor.refresh()
            time.sleep(TICK)

    def _announce_checkpoints(self) -> None:
        folder = self._plan.checkpoints
        if checkpoints.newest(folder) is not None:  # the workers find out which of them is whole, and fits
            self._monitor.message(
                f"found checkpoints in {folder} to go on from; for a new training name another "
                f"{self._workers.output_option}"
            )

    def _run_to_the_end(self) -> None:
        while True:
            self._run_once()
            self._listen(time.monotonic())
            verdict = self._decide()
            if isinstance(verdict, restarts.NoRestart):
                self._has_left = verdict is restarts.NoRestart.LEAVE
                return
            self._restarts += 1
            has_checkpoint = checkpoints.newest(self._plan.checkpoints) is not None
            count = self._restarts, self._max_restarts
            event = events.Restarting(verdict.reason, verdict.delay, *count, has_checkpoint)
            self._monitor.note(stamped(event))
            if self._is_told_to_end_within(verdict.delay):
                self._has_left = self.ending.is_pausing
                return

    def _decide(self) -> restarts.Restart | restarts.NoRestart:
        run = self._monitor.run
        first = run.failures.first(self._monitor.logs.last_lines) if run.is_fatal else None
        is_lost = first is not None and restarts.is_loss(first, self._transports.is_remote(first.host))
        return restarts.decide(run, self.ending, first, is_lost, self._restarts, self._max_restarts)

    def _run_once(self) -> None:
        plan, monitor = self._plan, self._monitor
        assert self._allocations.current is not None
        named = [host.host for host in self._allocations.current.hosts if host.slots]
        interface = self._hosts.interface_towards(named)
        self.ending = Ending()
        monitor.begin_run()
        ahead, self._ahead = self._ahead, None
        with ahead or self._new_run() as run, watching(plan.follow) as watch:
            monitor.note(stamped(events.Launched(tuple(self._workers.command), os.getpid(), interface)))
            self._applied = self._allocations.current
            run.start(self._applied)
            for happening in run.happenings(watch):
                match happening:
                    case events.Event():
                        monitor.note(happening)
                        self._allocations.observe(happening)
                        if isinstance(happening, events.Finished):
                            self.ending = self.ending.finished(time.monotonic())
                    case Line():
                        monitor.show(self._workers.shown(happening))
                    case LeftBehind(count):
                        monitor.message(f"killed {number(count)} that the workers had left behind")
                    case Tick():
                        self._tick(run)
            self._given_up.clear()
            self._given_up.update(run.given_up)

    def _new_run(self) -> DriverRun:
        return DriverRun(*self._how(), self._plan.paths.log, self._transports, self._files())

    def _how(self) -> tuple[Setup, DriverSettings]:
        """What the workers have in common, and what the driver goes by."""
        plan, options, workers = self._plan, self._plan.options, self._workers
        variables = workers.environment(environment(os.environ, plan))
        # What each worker has a value of its own for must not be among those of all.
        visible_devices = variables.pop("CUDA_VISIBLE_DEVICES", None)
        limits = members.WorldLimits(
            1 if workers.resize is Resize.FIXED else plan.limits.min_np,
            plan.limits.max_np,
            options.ready_timeout,
            math.ceil(options.start_timeout) or DEFAULT_TIMEOUT,
            workers.has_to_train,
            workers.resize,
        )
        run = self._runs.begin()
        variables |= self._runs.variables(run)
        directory = variables["PWD"] = str(workers.directory or os.getcwd())
        is_warm = options.warm_start and POLICIES[workers.resize].forks
        setup = Setup(tuple(workers.command), variables, directory, is_warm, sweeps=run.number > 1)
        settings = DriverSettings(
            workers.limits(limits),
            workers,
            workers.world(self._hosts.address_towards),
            self._hosts.address_towards,
            first_worker=self._monitor.run.next_worker,
            hang_timeout=options.hang_timeout,
            grace=options.grace,
            visible_devices=visible_devices,
            given_up=self._given_up,
            address_of=self._hosts.address,
            max_log_size=options.max_log_size,
            ports=options.ports,
        )
        return setup, settings

    def _files(self) -> HostFiles | None:
        plan, workers = self._plan, self._workers
        directory = Path(workers.directory or os.getcwd())
        try:
            return HostFiles(plan.paths, workers.command, directory, plan.options.keep_checkpoints)
        except OSError as error:
            self._monitor.message(
                f"{error.filename or plan.paths.root}: {error.strerror}; hosts that do not see the output "
                "directory get no files"
            )
            return None

    def _tick(self, run: DriverRun) -> None:
        now = time.monotonic()
        self._listen(now)
        self._allocations.follow(now)
        if self._allocations.current is not None and self._allocations.current != self._applied:
            self._applied = self._allocations.current
            run.follow(self._applied)
        self._act(run, now)
        self._monitor.refresh()

    # The end.

    def _listen(self, now: float) -> None:
        if not self._attend():
            self.ending = self.ending.unwanted(now)
        for received in self._take_signals():
            self.ending = self.ending.signalled(now, received)
        self._monitor.is_quiet = self.ending.is_wanted

    def _act(self, run: DriverRun, now: float) -> None:
        program = max(self._plan.options.grace, self._workers.end_grace)
        grace = GRACE + (program if self.ending.is_wanted else 0.0)
        if run.is_collecting and not self.ending.is_wanted:
            grace = math.inf
        self.ending, step = self.ending.decide(now, grace, has_workers=self._monitor.run.has_started)
        match step:
            case Step.TERMINATE:
                grace = self._plan.options.grace
                self._monitor.message(
                    f"ending all workers: SIGTERM now, SIGKILL after {grace:g} s; Ctrl-C kills them at once"
                )
                run.terminate()
            case Step.PAUSE:
                run_so_far = self._monitor.run
                can_save = run_so_far.has_been_ready or run_so_far.has_checkpointed
                saved = "their state is saved" if can_save else "they cannot save their work, which is lost"
                self._monitor.message(f"all workers are to leave, {saved}; SIGTERM ends the job for good")
                run.pause()
            case Step.KILL:
                self._monitor.message(f"{number(run.kill())} had to be killed")

    def _conclude(self) -> JobOutcome:
        if self.ending.exit_code is not None:
            return JobOutcome(self.ending.exit_code, f"edt-launch: ended by {signal_name(self.ending.first)}")
        if self._has_left:
            output = f"{self._workers.output_option} {self._plan.paths.root}"
            how = self._workers.how_to_go_on(self._plan.checkpoints, output)
            return JobOutcome(ExitCode.LEFT, f"edt-launch: all workers have left; {how}")
        logs, run, history = self._monitor.logs, self._monitor.run, self._monitor.history
        if history.exit_code == 0:
            early = run.early_exits
            exited = f"edt-launch: {describe_exits(early, self._log_of(early[0]))}" if early else ""
            return JobOutcome(ExitCode.SUCCESS, "\n".join(filter(None, [self._failing_slots(), exited])))
        log = self._plan.paths.own_log
        if not run.has_started and not self._restarts:
            reason = history.reason or "it was not wanted any more"
            return JobOutcome(
                ExitCode.NOT_STARTED, f"edt-launch: the job could not start: {reason}\nlog: {log}"
            )
        head = f"edt-launch: the job failed{_after(self._restarts)}: {history.reason}"
        first = run.failures.first(logs.last_lines)
        if first is None:
            return JobOutcome(ExitCode.JOB_FAILED, f"{head}\nlog: {log}")
        lines = logs.last_lines(first.worker, KEPT_LINES)
        text = self._workers.explain(run.failures.open) or describe(
            first, logs.last_lines(first.worker), self._log_of(first), cause_of(lines)
        )
        advice = "" if run.has_been_ready else self._workers.advice(lines)
        message = "\n".join(filter(None, [head, advice, text]))
        own = first.exit_code if first.exit_code >= 0 else 128 - first.exit_code
        return JobOutcome(ExitCode.JOB_FAILED, message, own)

    def _failing_slots(self) -> str:
        """What is to be said of slots in which no worker came to train; empty if there are none."""
        failing = self._monitor.run.failing_slots
        if failing.last is None or not failing.counts:
            return ""
        lines = self._monitor.logs.last_lines(failing.last.worker, KEPT_LINES)
        why = cause_of(lines) or failing.last.how_it_ended
        return (
            "edt-launch: the job succeeded on fewer workers than allocated: they failed before they trained "
            f"in {failing.text}; the last: {why}; log: {self._log_of(failing.last)}"
        )

    def _log_of(self, failure: events.Failed) -> Path:
        return self._monitor.logs.path_of(self._monitor.ranks.label(failure.worker))


def _after(restarts: int) -> str:
    return f" after {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""


def write_discovery_script(paths: RunDir) -> None:
    """Write a host-discovery script that shows the accepted allocation, for whoever has use for it."""
    command = shlex.join([DISCOVER, str(paths.allocation.absolute())])
    write_atomically(paths.discovery_script, f"#!/bin/sh\nexec {command}\n")
    paths.discovery_script.chmod(0o755)
