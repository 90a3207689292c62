"""Running a script as a real job that records what it computes."""

import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edt_launch.cluster import local
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import ExitCode, RunError
from edt_launch.core.history.job_history import JobHistory
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.programs.script import Script
from edt_launch.launcher.runs import job
from edt_launch.launcher.view.output import Line
from edt_launch.tools.verify.records import RecordedRun, read
from edt_launch.tools.verify.schedules import Schedule

ENDED = (ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED)
"""How a job ends that was sent a signal."""


class InterruptedRunError(Exception):
    """A signal has ended a run; carries the exit code that it leads to."""

    def __init__(self, exit_code: ExitCode) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Runner:
    """Runs a script, with the same bounds on its size in every run, so that all else is the same, too.

    Attributes:
        program: the script and its arguments.
        folder: where the runs get a folder each.
        max_np: the largest number of workers of all runs.
        steps: after which training is ended.
        timeout: seconds that a run may take.
        signals: grows by the signals that this process receives.
        devices: one for each of `max_np` workers, or none to compute on the CPU.
    """

    program: Sequence[str]
    folder: Path
    max_np: int
    steps: int
    timeout: float
    signals: list[int]
    devices: Sequence[str] = ()

    def run(self, name: str, schedule: Schedule, traced: int = 0) -> RecordedRun:
        """Run the script once.

        Args:
            name: of the run, and of its folder.
            schedule: the sizes.
            traced: number of the step whose operators are traced and with which training ends; 0: none.

        Raises:
            RunError: the job failed, took too long, or has recorded nothing.
            InterruptedRunError: a signal has ended it.
        """
        folder = self.folder / re.sub(r"[^0-9a-z]+", "-", name)
        records, paths = folder / "record", RunDir(folder)
        records.mkdir(parents=True)
        schedule = schedule.until(traced) if traced else schedule
        watcher = _Watcher(folder / "allocation", records, schedule, self)
        variables = {
            "EDT_RECORD": str(records),
            "EDT_RECORD_STEPS": str(traced or self.steps),
            "EDT_RECORD_HOLD": ",".join(map(str, schedule.holds)),
            "EDT_RECORD_OPERATORS": str(traced),
            **({} if self.devices else {"CUDA_VISIBLE_DEVICES": ""}),
        }
        program = Script([sys.executable, *self.program], variables)
        limits, options = SizeLimits(1, self.max_np), RunOptions(start_timeout=self.timeout)
        plan = Plan(limits=limits, paths=paths, follow=folder / "allocation", options=options)
        outcome = job.run(program, plan, watcher, self.signals)
        if watcher.is_late:
            raise RunError(f"{name}: not done after {self.timeout:g} s; raise --timeout\nlogs: {paths.log}")
        if outcome.exit_code in ENDED:
            raise InterruptedRunError(outcome.exit_code)
        if outcome.exit_code is not ExitCode.SUCCESS:
            raise RunError(f"{name}: {outcome.message}")
        return _checked(read(name, schedule, records), paths)


def _checked(run: RecordedRun, paths: RunDir) -> RecordedRun:
    if run.steps == 0:
        raise RunError(
            f"{run.name}: nothing was recorded: verify needs edt_hvd.TorchState and its commit() after "
            f"every step of an elastic function\nlogs: {paths.log}"
        )
    if len(run.sizes) < len(run.schedule.sizes):
        sizes = " → ".join(map(str, run.sizes))
        raise RunError(
            f"{run.name}: the training ended after step {run.steps}, with {sizes} workers only; "
            f"let it train for longer\nlogs: {paths.log}"
        )
    return run


class _Watcher:
    """Looks at a job at every tick, in place of a view: asks for its next size, ends it when it is late."""

    def __init__(self, allocation: Path, records: Path, schedule: Schedule, runner: Runner) -> None:
        self._allocation = allocation
        self._records = records
        self._schedule = schedule
        self._runner = runner
        self._began: float | None = None
        self._stage = 0
        self.is_late = False
        self._ask()

    def line(self, line: Line, label: str) -> None:
        """The workers' lines go to their logs only."""

    def message(self, text: str) -> None:
        """The launcher's messages go to the event log only."""

    def refresh(self, now: float, job: JobHistory) -> None:
        """Ask for the next size once the workers wait for it."""
        self._began = now if self._began is None else self._began
        if now - self._began > self._runner.timeout and not self.is_late:
            self.is_late = True
            self._runner.signals.append(signal.SIGTERM)
        holds = self._schedule.holds
        if self._stage < len(holds) and (self._records / f"holding.{holds[self._stage]}").exists():
            self._stage += 1
            self._ask()

    def close(self, job: JobHistory) -> None:
        """Nothing was shown."""

    def _ask(self) -> None:
        size = self._schedule.sizes[self._stage]
        local.allocate_here(self._allocation, self._stage + 1, size, self._runner.devices)
