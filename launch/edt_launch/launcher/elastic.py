"""One training from its first worker to its last: the loop around all the decisions."""

import math
import os
import time
from collections.abc import Callable

from edt_launch.agent.processes import number
from edt_launch.agent.protocol import Setup
from edt_launch.cluster.allocation import Allocation
from edt_launch.core import events
from edt_launch.core.errors import ExitCode, StartTimeoutError
from edt_launch.core.event_log import stamped
from edt_launch.core.file_watch import watching
from edt_launch.launcher import checkpoints, discovery, restarts
from edt_launch.launcher.connectors.choice import choose
from edt_launch.launcher.driver import Settings
from edt_launch.launcher.environment import environment
from edt_launch.launcher.failures import describe
from edt_launch.launcher.plan import Outcome, Plan
from edt_launch.launcher.programs.program import Job, Workers
from edt_launch.launcher.run import TICK, EventReceived, LeftBehind, Run
from edt_launch.launcher.supervision import Supervision, supervised
from edt_launch.launcher.termination import Ending, Step, signal_name
from edt_launch.launcher.view.output import KEPT_LINES, Line
from edt_launch.membership import members
from edt_launch.worlds.gloo import GlooWorld

RESTARTS = 3
"""How often a job whose workers were all lost is started again, unless the user says so."""

DEFAULT_TIMEOUT = 600.0
"""Seconds for which survivors wait for others where the user has no time to wait for the first ones."""

Attend = Callable[[], bool]
"""Called at every tick; whether somebody still needs what the job does."""


def run(job: Job, workers: Workers) -> Outcome:
    """Run a job that is one training.

    Raises:
        UsageError: a host or the interface is wrong.
        StartError: there were not enough slots in time, or an agent cannot be executed.
    """
    with supervised(job) as supervision:
        return Elastic(job.plan, workers, supervision).run()


class Elastic:
    """Runs workers, again where that helps, until the training is over or told to end.

    Args:
        plan: where and how to run.
        workers: what to run.
        supervision: looks after the job.
        attend: looks after what else there is; see `Attend`.
    """

    def __init__(
        self,
        plan: Plan,
        workers: Workers,
        supervision: Supervision,
        attend: Attend = lambda: True,
    ) -> None:
        self._plan = plan
        self._workers = workers
        self._monitor = supervision.monitor
        self._allocations = supervision.allocations
        self._hosts = supervision.hosts
        self._take_signals = supervision.listen
        self._attend = attend
        given = RESTARTS if plan.options.max_restarts is None else plan.options.max_restarts
        self._max_restarts = 0 if workers.is_gang else given
        self._restarts = 0
        self._applied: Allocation | None = None
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
            self._announce_checkpoints()
            self._run_to_the_end()
            self._has_run = True
        return self._conclude()

    def _has_slots(self) -> bool:
        """Wait for the first allocation; whether it has come before the job is to end."""
        deadline = time.monotonic() + self._plan.options.start_timeout
        while True:
            now = time.monotonic()
            if self._is_to_end(now):
                return False
            self._allocations.follow(now)
            if self._allocations.current is not None:
                return True
            if now >= deadline:
                raise StartTimeoutError(
                    0, self._plan.limits.min_np, self._plan.options.start_timeout, self._allocations.rejection
                )
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
        """Run the workers, again where that helps."""
        while True:
            self._run_once()
            self._listen(time.monotonic())
            verdict = restarts.decide(self._end(), self._restarts, self._max_restarts)
            self._has_left = isinstance(verdict, restarts.Leave)
            if not isinstance(verdict, restarts.Restart):
                return
            self._restarts += 1
            has_checkpoint = checkpoints.newest(self._plan.checkpoints) is not None
            count = self._restarts, self._max_restarts
            event = events.Restarting(verdict.reason, verdict.delay, *count, has_checkpoint)
            self._monitor.note(stamped(event))
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
            self._monitor.refresh()
            time.sleep(TICK)
        return False

    def _run_once(self) -> None:
        plan, monitor = self._plan, self._monitor
        assert self._allocations.current is not None
        interface = self._interface(self._allocations.current)
        connector = choose(plan.options, os.environ)
        self.ending = Ending()
        monitor.begin_run()
        with (
            watching(plan.follow) as watch,
            Run(*self._how(interface), plan.paths.log, self._hosts, connector, watch) as run,
        ):
            command = tuple(self._workers.command)
            monitor.note(stamped(events.Launched(command, os.getpid(), interface)))
            self._applied = self._allocations.current
            run.start(self._applied)
            for happening in run.happenings():
                match happening:
                    case EventReceived(event):
                        monitor.note(event)
                        if isinstance(event, events.Finished):
                            self.ending = self.ending.finished(time.monotonic())
                    case Line():
                        monitor.show(happening)
                    case LeftBehind(count):
                        monitor.message(f"killed {number(count)} that the workers had left behind")
                    case _:
                        self._tick(run)

    def _how(self, interface: str) -> tuple[Setup, Settings]:
        """What the workers have in common, and what the driver goes by."""
        plan, options, workers = self._plan, self._plan.options, self._workers
        variables = workers.environment(environment(os.environ, plan))
        # What each worker has a value of its own for must not be among those of all.
        visible_devices = variables.pop("CUDA_VISIBLE_DEVICES", None)
        address = self._hosts.address_on(interface)
        limits = members.Limits(
            1 if workers.is_gang else plan.limits.min_np,
            plan.limits.max_np,
            options.ready_timeout,
            math.ceil(options.start_timeout) or DEFAULT_TIMEOUT,
            workers.is_gang,
        )
        directory = str(workers.directory or os.getcwd())
        is_warm = options.warm_start and not workers.is_gang
        setup = Setup(tuple(workers.command), variables, directory, is_warm)
        settings = Settings(
            limits,
            workers,
            GlooWorld(address, interface),
            address,
            first_worker=self._monitor.run.next_worker,
            hang_timeout=options.hang_timeout,
            visible_devices=visible_devices,
        )
        return setup, settings

    def _interface(self, allocation: Allocation) -> str:
        named = (host.host for host in allocation.hosts if host.slots)
        return self._hosts.choose(self._plan.options.network_interface, named)

    def _tick(self, run: Run) -> None:
        now = time.monotonic()
        self._listen(now)
        self._allocations.follow(now)
        if self._allocations.current is not None and self._allocations.current != self._applied:
            self._applied = self._allocations.current
            run.follow(self._applied)
        self._act(run, now)
        self._monitor.refresh()

    # The end.

    def _is_to_end(self, now: float) -> bool:
        self._listen(now)
        return self.ending.is_wanted or self.ending.is_pausing

    def _listen(self, now: float) -> None:
        if not self._attend():
            self.ending = self.ending.unwanted(now)
        for received in self._take_signals():
            self.ending = self.ending.signalled(now, received)
        self._monitor.is_quiet = self.ending.is_wanted

    def _act(self, run: Run, now: float) -> None:
        self.ending, step = self.ending.decide(now, has_workers=self._monitor.run.has_started)
        match step:
            case Step.TERMINATE:
                self._monitor.message("ending all workers; Ctrl-C kills them at once")
                run.terminate()
            case Step.PAUSE:
                self._monitor.message(
                    "all workers are to leave, their state is saved; SIGTERM ends them at once"
                )
                run.pause()
            case Step.KILL:
                self._monitor.message(f"{number(run.kill())} had to be killed")

    def _end(self) -> restarts.End:
        """How the last run has ended."""
        run, status = self._monitor.run, self._monitor.status
        first = run.failures.first(self._monitor.logs.last_lines) if run.is_fatal else None
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
        return f"start it again with {self._workers.output_option} {self._plan.paths.root} to go on"

    def _conclude(self) -> Outcome:
        """How the job ended."""
        if self.ending.exit_code is not None:
            return Outcome(self.ending.exit_code, f"edt-launch: ended by {signal_name(self.ending.first)}")
        if self._has_left or (not self._has_run and self.ending.is_pausing):
            return Outcome(ExitCode.LEFT, f"edt-launch: all workers have left; {self._how_to_go_on()}")
        logs, run, status = self._monitor.logs, self._monitor.run, self._monitor.status
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
        path = self._plan.paths.rank_log(self._monitor.ranks.label(first.worker))
        text = describe(first, logs.last_lines(first.worker), path)
        lines = logs.last_lines(first.worker, KEPT_LINES)
        advice = "" if run.has_been_ready else self._workers.advice(lines)
        return Outcome(ExitCode.JOB_FAILED, "\n".join(filter(None, [head, advice, text])))


def _after(restarts: int) -> str:
    return f" after {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""
