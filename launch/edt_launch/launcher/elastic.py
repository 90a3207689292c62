"""One training from its first worker to its last: the loop around all the decisions."""

import math
import os
import time
from collections.abc import Callable

from edt_launch.adapters.wmla.running.workers import Workers
from edt_launch.agent.processes import number
from edt_launch.agent.protocol import Setup
from edt_launch.cluster.allocation import Allocation
from edt_launch.cluster.network import HostChecker
from edt_launch.core import events
from edt_launch.core.errors import ExitCode, StartTimeoutError
from edt_launch.core.event_log import stamped
from edt_launch.core.file_watch import watching
from edt_launch.launcher import checkpoints, discovery, restarts
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.driver import Settings
from edt_launch.launcher.environment import environment
from edt_launch.launcher.failures import NOT_ELASTIC, describe, looks_like_plain_horovod
from edt_launch.launcher.job_monitor import Desk
from edt_launch.launcher.plan import Outcome, Plan
from edt_launch.launcher.run import TICK, LeftBehind, Run, Told
from edt_launch.launcher.termination import Ending, Listen, Step, signal_name
from edt_launch.launcher.view.output import KEPT_LINES, Line
from edt_launch.membership import members

DEFAULT_TIMEOUT = 600.0
"""Seconds for which survivors wait for others where the user has no time to wait for the first ones."""

Attend = Callable[[], bool]
"""Called at every tick; whether somebody still needs what the job does."""


class Elastic:
    """Runs workers, again where that helps, until the training is over or told to end.

    Args:
        plan: what to run.
        desk: takes in what happens.
        allocations: where to run.
        checker: looks at hosts.
        listen: gives the signals that have come.
        attend: looks after what else there is; see `Attend`.
    """

    def __init__(
        self,
        plan: Plan,
        desk: Desk,
        allocations: Allocations,
        checker: HostChecker,
        listen: Listen,
        attend: Attend = lambda: True,
    ) -> None:
        self._plan = plan
        self._desk = desk
        self._allocations = allocations
        self._hosts = checker
        self._hear_signals = listen
        self._attend = attend
        self._restarts = 0
        self._following: Allocation | None = None
        """What the run under way knows of."""
        self._has_left = False
        self._has_run = False
        self.ending = Ending()
        """How far the end is that somebody has asked for."""

    def run(self) -> Outcome:
        """Run the job.

        Raises:
            UsageError: a host or the interface is wrong.
            StartError: there were not enough slots in time, or an agent cannot be executed.
        """
        if self._has_slots():
            discovery.write(self._plan.paths.discovery_script, self._plan.paths.allocation)
            self._tell_where_it_goes_on()
            self._run_to_the_end()
            self._has_run = True
        return self._conclude()

    def _has_slots(self) -> bool:
        """Wait for the first allocation; whether it has come before the job is to end."""
        deadline = time.monotonic() + self._plan.start_timeout
        while True:
            now = time.monotonic()
            if self._is_to_end(now):
                return False
            self._allocations.follow(now)
            if self._allocations.current is not None:
                return True
            if now >= deadline:
                raise StartTimeoutError(
                    0, self._plan.limits.min_np, self._plan.start_timeout, self._allocations.rejection
                )
            self._desk.refresh()
            time.sleep(TICK)

    def _tell_where_it_goes_on(self) -> None:
        folder = self._plan.checkpoints
        if checkpoints.newest(folder) is not None:  # the workers find out which of them is whole, and fits
            self._desk.message(
                f"found checkpoints in {folder} to go on from; for a new training name another "
                f"{self._plan.output_option}"
            )

    def _run_to_the_end(self) -> None:
        """Run the workers, again where that helps."""
        while True:
            self._run_once()
            self._listen(time.monotonic())
            verdict = restarts.decide(self._end(), self._restarts, self._plan.max_restarts)
            self._has_left = isinstance(verdict, restarts.Leave)
            if not isinstance(verdict, restarts.Restart):
                return
            self._restarts += 1
            has_checkpoint = checkpoints.newest(self._plan.checkpoints) is not None
            count = self._restarts, self._plan.max_restarts
            self._desk.note(stamped(events.Restarting(verdict.reason, verdict.delay, *count, has_checkpoint)))
            if self._is_told_to_end_within(verdict.delay):
                self._has_left = self.ending.is_pausing
                return

    def _is_told_to_end_within(self, seconds: float) -> bool:
        """Wait so long, or until the allocation changes; whether the job is to end."""
        until, before = time.monotonic() + seconds, self._allocations.current
        while (now := time.monotonic()) < until and self._allocations.current == before:
            if self._is_to_end(now):
                return True
            self._allocations.follow(now)
            self._desk.refresh()
            time.sleep(TICK)
        return False

    def _run_once(self) -> None:
        plan, desk = self._plan, self._desk
        assert self._allocations.current is not None
        interface = self._interface(self._allocations.current)
        self.ending = Ending()
        desk.begin_run()
        with (
            watching(plan.follow) as watch,
            Run(*self._how(interface), plan.paths.log, self._hosts, plan.remote, watch) as run,
        ):
            desk.note(stamped(events.Launched(tuple(plan.program), os.getpid(), interface)))
            self._following = self._allocations.current
            run.start(self._following)
            for happening in run.happenings():
                match happening:
                    case Told(event):
                        desk.note(event)
                        if isinstance(event, events.Finished):
                            self.ending = self.ending.finished(time.monotonic())
                    case Line():
                        desk.show(happening)
                    case LeftBehind(count):
                        desk.message(f"killed {number(count)} that the workers had left behind")
                    case _:
                        self._tick(run)

    def _how(self, interface: str) -> tuple[Setup, Settings]:
        """What the workers have in common, and what the driver goes by."""
        plan = self._plan
        shared = environment(
            os.environ, plan.paths, plan.checkpoint_interval, plan.keep_checkpoints, plan.checkpoints
        )
        variables = {**shared, **plan.variables}
        # What each worker has a value of its own for must not be among those of all.
        visible_devices = variables.pop("CUDA_VISIBLE_DEVICES", None)
        address = self._hosts.address_on(interface)
        wmla = Workers.of(variables, address)
        is_gang = wmla is not None and wmla.is_gang
        limits = members.Limits(
            1 if is_gang else plan.limits.min_np,
            plan.limits.max_np,
            plan.ready_timeout,
            math.ceil(plan.start_timeout) or DEFAULT_TIMEOUT,
            is_gang,
        )
        directory = str(plan.directory or os.getcwd())
        setup = Setup(tuple(plan.program), variables, directory, plan.warm_start)
        first = self._desk.run.next_worker
        settings = Settings(limits, address, interface, first, plan.hang_timeout, visible_devices, wmla)
        return setup, settings

    def _interface(self, allocation: Allocation) -> str:
        named = (host.host for host in allocation.hosts if host.slots)
        return self._hosts.choose(self._plan.interface, named)

    def _tick(self, run: Run) -> None:
        now = time.monotonic()
        self._listen(now)
        self._allocations.follow(now)
        if self._allocations.current is not None and self._allocations.current != self._following:
            self._following = self._allocations.current
            run.follow(self._following)
        self._act(run, now)
        self._desk.refresh()

    # The end.

    def _is_to_end(self, now: float) -> bool:
        self._listen(now)
        return self.ending.is_wanted or self.ending.is_pausing

    def _listen(self, now: float) -> None:
        if not self._attend():
            self.ending = self.ending.unwanted(now)
        for heard in self._hear_signals():
            self.ending = self.ending.signalled(now, heard)
        self._desk.is_quiet = self.ending.is_wanted

    def _act(self, run: Run, now: float) -> None:
        self.ending, step = self.ending.decide(now, has_workers=self._desk.run.has_started)
        match step:
            case Step.TERMINATE:
                self._desk.message("ending all workers; Ctrl-C kills them at once")
                run.terminate()
            case Step.PAUSE:
                self._desk.message(
                    "all workers are to leave, their state is saved; SIGTERM ends them at once"
                )
                run.pause()
            case Step.KILL:
                self._desk.message(f"{number(run.kill())} had to be killed")

    def _end(self) -> restarts.End:
        """How the last run has ended."""
        run, status = self._desk.run, self._desk.status
        first = run.failures.first(self._desk.logs.last_lines) if run.is_fatal else None
        return restarts.End(
            succeeded=status.exit_code == 0,
            is_wanted=self.ending.is_wanted,
            is_pausing=self.ending.is_pausing,
            has_trained=run.has_trained,
            has_checkpointed=run.has_checkpointed,
            has_returned=run.has_returned,
            ended_by=first,
            is_lost=first is not None and restarts.is_loss(first, self._hosts.is_remote(first.host)),
            has_left=run.has_left,
            reason=status.reason,
        )

    def _how_to_go_on(self) -> str:
        if checkpoints.newest(self._plan.checkpoints) is None:
            return "there is no checkpoint: started again, the job begins anew"
        return f"start it again with {self._plan.output_option} {self._plan.paths.root} to go on"

    def _conclude(self) -> Outcome:
        """How the job ended."""
        if self.ending.exit_code is not None:
            return Outcome(self.ending.exit_code, f"edt-launch: ended by {signal_name(self.ending.first)}")
        if self._has_left or (not self._has_run and self.ending.is_pausing):
            return Outcome(ExitCode.LEFT, f"edt-launch: all workers have left; {self._how_to_go_on()}")
        logs, run, status = self._desk.logs, self._desk.run, self._desk.status
        if status.exit_code == 0:
            return Outcome(ExitCode.SUCCESS)
        log = self._plan.paths.own_log
        if not run.has_started and not self._restarts:
            reason = status.reason or "it was not wanted any more"
            return Outcome(ExitCode.NOT_STARTED, f"edt-launch: the job could not start: {reason}\nlog: {log}")
        head = f"edt-launch: the job failed{_after(self._restarts)}: {status.reason}"
        first = run.failures.first(logs.last_lines)
        if first is None:
            return Outcome(ExitCode.JOB_FAILED, f"{head}\nlog: {log}")
        path = self._plan.paths.rank_log(self._desk.ranks.label(first.worker))
        text = describe(first, logs.last_lines(first.worker), path)
        lines = logs.last_lines(first.worker, KEPT_LINES)
        may_be_horovods = self._plan.wmla is None and not run.has_been_ready
        if may_be_horovods and looks_like_plain_horovod(lines):
            head = f"{head}\n{NOT_ELASTIC}"
        return Outcome(ExitCode.JOB_FAILED, f"{head}\n{text}")


def _after(restarts: int) -> str:
    return f" after {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""
