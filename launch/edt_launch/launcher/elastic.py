"""One training from its first worker to its last: horovodrun, and the loop around all the decisions."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from edt_launch.agent.forkable import attached
from edt_launch.agent.processes import number
from edt_launch.errors import ExitCode, StartTimeoutError
from edt_launch.hosts.network import HostChecker
from edt_launch.launcher import checkpoints, discovery, events, restarts
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.child import command, environment
from edt_launch.launcher.desk import Desk
from edt_launch.launcher.ending import Ending, Step, signal_name
from edt_launch.launcher.failures import NOT_ELASTIC, describe, looks_like_plain_horovod
from edt_launch.launcher.plan import Outcome, Plan
from edt_launch.launcher.supervise import TICK, LeftBehind, Supervised, Told
from edt_launch.view.output import KEPT_LINES, Line
from edt_launch.watching import watching

Attend = Callable[[], bool]
"""Called at every tick; whether somebody still needs what the job does."""


class Elastic:
    """Runs workers, again where that helps, until the training is over or told to end.

    Args:
        plan: what to run.
        desk: takes in what happens.
        allocations: where to run.
        checker: looks at hosts.
        signals: grows by the signals that this process receives.
        attend: looks after what else there is; see `Attend`.
    """

    def __init__(
        self,
        plan: Plan,
        desk: Desk,
        allocations: Allocations,
        checker: HostChecker,
        signals: list[int],
        attend: Attend = lambda: True,
    ) -> None:
        self._plan = plan
        self._desk = desk
        self._allocations = allocations
        self._hosts = checker
        self._signals = signals
        self._attend = attend
        self._restarts = 0
        self._has_left = False
        self.ending = Ending()
        """How far the end is that somebody has asked for."""

    def run(self, horovodrun: Sequence[str]) -> Outcome:
        """Run the job.

        Raises:
            UsageError: a host or the interface is wrong.
            StartError: there were not enough slots in time, or horovodrun cannot be executed.
        """
        if not self._has_slots():
            return self._conclude(None)
        discovery.write(self._plan.paths.discovery_script, self._plan.paths.allocation)
        self._tell_where_it_goes_on()
        return self._conclude(self._run_to_the_end(horovodrun))

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

    def _run_to_the_end(self, horovodrun: Sequence[str]) -> int:
        """Run horovodrun, again where that helps; returns its last exit code, negative for a signal."""
        while True:
            exit_code = self._run_once(horovodrun)
            self._listen(time.monotonic())
            verdict = restarts.decide(self._end(exit_code), self._restarts, self._plan.max_restarts)
            self._has_left = isinstance(verdict, restarts.Leave)
            if not isinstance(verdict, restarts.Restart):
                return exit_code
            self._restarts += 1
            count = {"restart": self._restarts, "of": self._plan.max_restarts}
            has_checkpoint = checkpoints.newest(self._plan.checkpoints) is not None
            self._desk.note(
                events.new("restarting", **asdict(verdict), **count, has_checkpoint=has_checkpoint)
            )
            if self._is_told_to_end_within(verdict.delay):
                self._has_left = self.ending.is_pausing
                return exit_code

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

    def _run_once(self, horovodrun: Sequence[str]) -> int:
        plan, desk = self._plan, self._desk
        interface = self._interface()
        program = attached(plan.program) if plan.warm_start else plan.program
        words = command(
            program, plan.limits, interface, plan.paths, plan.start_timeout, plan.remote, horovodrun
        )
        self.ending = Ending()
        desk.begin_run()
        with (
            watching(plan.follow) as watch,
            Supervised(words, self._environment(), plan.directory, desk.ranks, watch) as child,
        ):
            desk.note(events.new("launched", command=list(plan.program), pid=child.pid, interface=interface))
            for happening in child.happenings():
                match happening:
                    case Told(event):
                        desk.note(event)
                        if event["event"] == "finished":
                            self.ending = self.ending.finished(time.monotonic())
                    case Line():
                        desk.show(happening)
                    case LeftBehind(count):
                        desk.message(f"killed {number(count)} that horovodrun had left behind")
                    case _:
                        self._tick(child)
            return child.exit_code

    def _environment(self) -> dict[str, str]:
        plan = self._plan
        ours = environment(
            os.environ,
            plan.paths,
            self._desk.course.next_worker,
            plan.checkpoint_interval,
            plan.keep_checkpoints,
            plan.hang_timeout,
            plan.ready_timeout,
            plan.checkpoints,
        )
        return {**ours, **plan.variables}

    def _interface(self) -> str:
        assert self._allocations.current is not None
        named = (host.host for host in self._allocations.current.hosts if host.slots)
        return self._hosts.choose(self._plan.interface, named)

    def _tick(self, child: Supervised) -> None:
        now = time.monotonic()
        self._listen(now)
        self._allocations.follow(now)
        self._act(child, now)
        self._desk.refresh()

    # The end.

    def _is_to_end(self, now: float) -> bool:
        self._listen(now)
        return self.ending.is_wanted or self.ending.is_pausing

    def _listen(self, now: float) -> None:
        if not self._attend():
            self.ending = self.ending.unwanted(now)
        while self._signals:
            self.ending = self.ending.signalled(now, self._signals.pop(0))
        self._desk.is_quiet = self.ending.is_wanted

    def _act(self, child: Supervised, now: float) -> None:
        self.ending, step = self.ending.decide(now, has_workers=self._desk.course.has_started)
        match step:
            case Step.TERMINATE:
                self._desk.message("ending all workers; Ctrl-C kills them at once")
                child.terminate()
            case Step.PAUSE:
                self._desk.message(
                    "all workers are to leave, their state is saved; SIGTERM ends them at once"
                )
                child.pause()
            case Step.KILL:
                self._desk.message(f"{number(child.kill())} had to be killed")

    def _end(self, exit_code: int) -> restarts.End:
        """How the last run has ended."""
        course, status = self._desk.course, self._desk.status
        first = course.failures.first(self._desk.logs.last_lines) if course.is_fatal else None
        return restarts.End(
            succeeded=self._has_succeeded(exit_code),
            is_wanted=self.ending.is_wanted,
            is_pausing=self.ending.is_pausing,
            has_trained=course.has_trained,
            has_checkpointed=course.has_checkpointed,
            has_returned=course.has_returned,
            is_over=status.exit_code is not None,
            ended_by=first,
            is_lost=first is not None and restarts.is_loss(first, self._hosts.is_remote(first.host)),
            how=_how_it_ended(exit_code),
            has_left=course.has_left,
            is_aborted=course.is_aborted,
            reason=status.reason,
            exit_code=exit_code,
        )

    def _how_to_go_on(self) -> str:
        if checkpoints.newest(self._plan.checkpoints) is None:
            return "there is no checkpoint: started again, the job begins anew"
        return f"start it again with {self._plan.output_option} {self._plan.paths.root} to go on"

    def _has_succeeded(self, exit_code: int | None) -> bool:
        ended = self._desk.status.exit_code
        return ended == 0 or (exit_code == 0 and ended is None)

    def _conclude(self, exit_code: int | None) -> Outcome:
        """How the job ended, given horovodrun's exit code (None if it was never started)."""
        if self.ending.exit_code is not None:
            return Outcome(self.ending.exit_code, f"edt-launch: ended by {signal_name(self.ending.first)}")
        if self._has_left or (exit_code is None and self.ending.is_pausing):
            return Outcome(ExitCode.LEFT, f"edt-launch: all workers have left; {self._how_to_go_on()}")
        if self._has_succeeded(exit_code):
            return Outcome(ExitCode.SUCCESS)
        how = _how_it_ended(exit_code)
        log = self._plan.paths.horovodrun_log
        logs, course = self._desk.logs, self._desk.course
        has_begun = course.has_started or self._restarts > 0
        if not has_begun or exit_code == ExitCode.NOT_STARTED:
            said = "\n".join(f"  | {line}" for line in logs.last_lines(None))
            return Outcome(
                ExitCode.NOT_STARTED, f"edt-launch: the job could not start: {how}\n{said}\nlog: {log}"
            )
        head = f"edt-launch: the job failed{_after(self._restarts)}: {self._desk.status.reason or how}"
        first = course.failures.first(logs.last_lines)
        if first is None:
            return Outcome(ExitCode.JOB_FAILED, f"{head}\nlog: {log}")
        path = self._plan.paths.rank_log(self._desk.ranks.label(first.worker))
        text = describe(first, logs.last_lines(first.worker), path)
        lines = logs.last_lines(first.worker, KEPT_LINES)
        may_be_horovods = self._plan.wmla is None and not course.has_come_to_the_door
        if may_be_horovods and looks_like_plain_horovod(lines):
            head = f"{head}\n{NOT_ELASTIC}"
        return Outcome(ExitCode.JOB_FAILED, f"{head}\n{text}")


def _after(restarts: int) -> str:
    return f" after {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""


def _how_it_ended(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"horovodrun was killed by {signal.Signals(-exit_code).name}"
    return f"horovodrun ended with exit code {exit_code}"
