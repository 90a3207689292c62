"""An elastic WMLA job: its driver, and the executors of each of the driver's trainings.

The driver runs the script from beginning to end; executors train what its `train()` hands over. A training
has as many executors as the job has slots.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from platform import node

from edt_launch.adapters.wmla.running.driver import DriverProcess, Invalid, how
from edt_launch.adapters.wmla.running.environment import of_driver, shared
from edt_launch.adapters.wmla.running.preparing import Prepared
from edt_launch.adapters.wmla.running.workers import WmlaWorkers
from edt_launch.agent.system.processes import number
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import EdtLaunchError, ExitCode
from edt_launch.core.history import events
from edt_launch.core.history.event_log import stamped
from edt_launch.core.history.failure_text import CAUSE, QUOTE
from edt_launch.launcher.cause import cause_of
from edt_launch.launcher.elastic import Elastic, Supervision
from edt_launch.launcher.environment import environment
from edt_launch.launcher.plan import JobOutcome, Plan
from edt_launch.launcher.run_summary import without_lines
from edt_launch.launcher.runs.run import TICK, LeftBehind
from edt_launch.launcher.termination import PAUSE_SIGNAL, Ending, Step, signal_name
from edt_launch.launcher.view.output import DRIVER, Line
from edt_messages.wmla import Cancel, Ended, ExecutorMessage, Limit, Train

PREFIX = "edt-launch: "


class Driven:
    """Runs the driver, a process of this command, and what it asks for, until it has ended.

    `executor` is the beginning of the commands that it will ask for; empty if that is not known.
    """

    def __init__(
        self,
        command: Sequence[str],
        executor: Sequence[str],
        prepared: Prepared,
        plan: Plan,
        supervision: Supervision,
    ) -> None:
        self._command = command
        self._executor = executor
        self._prepared = prepared
        self._plan = plan
        self._supervision = supervision
        self._monitor = supervision.monitor
        self._allocations = supervision.allocations
        self._ending = Ending()
        self._wanted: Train | None = None
        self._training: SizeLimits | None = None
        """Of the training under way."""
        self._number: int | None = None
        """Which call of train() it is."""
        self._is_cancelled = False
        """Whether the driver wants the training under way to end."""
        self._most = 0
        """Workers that the driver has said it can use."""
        self._invalid = ""
        """What the driver has sent that is no message, or none at that time."""
        self._is_torn = False
        """Whether the driver has ended in the middle of training."""
        self._applied = -1
        self._last = JobOutcome(ExitCode.SUCCESS)
        """Of the last training."""
        self._ahead: tuple[Elastic, WmlaWorkers] | None = None
        """The first training, whose agents start with the driver: both import at the same time."""

    def run(self) -> JobOutcome:
        """Run the job; raises `UsageError` if a host is wrong, `StartError` if the driver cannot start."""
        with self._start() as driver, contextlib.ExitStack() as stack:
            if self._executor:
                expected = Train(1, tuple(self._executor), self._plan.limits.max_np)
                self._ahead = self._new(driver, expected, self._plan.limits)
                stack.enter_context(contextlib.closing(self._ahead[0]))
            while (request := self._next(driver)) is not None:
                self._last = self._train(driver, request)
                if not self._is_to_end:
                    message = without_lines(self._last.message.removeprefix(PREFIX))
                    driver.send(Ended(request.number, self._last.exit_code, message))
            exit_code = driver.exit_code
        assert exit_code is not None
        return self._conclude(exit_code)

    def _start(self) -> DriverProcess:
        plan, result, identity = self._plan, self._prepared.layout.result, self._prepared.identity
        result.make(identity.driver, node())
        own = of_driver(result, identity, node(), plan.limits.max_np)
        variables = {**shared(environment(os.environ, plan)), **self._prepared.variables, **own}
        printed = (result.printed(identity.driver, "stdout"), result.printed(identity.driver, "stderr"))
        work = self._prepared.layout.work
        driver = DriverProcess(self._command, variables, work, printed, self._monitor.message)
        self._monitor.note(stamped(events.Driver(driver.pid, identity.driver)))
        return driver

    def _next(self, driver: DriverProcess) -> Train | None:
        """Wait until the driver wants something trained; None when it has ended."""
        while driver.exit_code is None:
            now = time.monotonic()
            for received in self._supervision.listen():
                self._ending = self._ending.signalled(now, received)
            self._monitor.is_quiet = self._ending.is_wanted
            self._follow(now)
            if self._ahead is not None and not self._is_to_end:
                self._ahead[0].start_ahead()
            self._act(driver, now)
            if self._wanted is not None and not self._is_to_end:
                request, self._wanted = self._wanted, None
                return request
            self._take_happenings(driver, TICK)
            self._monitor.refresh()
        return None

    @property
    def _is_to_end(self) -> bool:
        return self._ending.is_wanted or self._ending.is_pausing

    def _follow(self, now: float) -> None:
        """Follow the allocation while there is no driver that would tell that it is followed."""
        self._allocations.follow(now)
        current = self._allocations.current
        if current is not None and current.generation > self._applied:
            self._applied = current.generation
            self._monitor.note(stamped(events.Following(self._applied)))

    def _act(self, driver: DriverProcess, now: float) -> None:
        self._ending, step = self._ending.decide(now, has_workers=False)
        match step:
            case Step.TERMINATE:
                self._monitor.message("ending the driver; Ctrl-C kills it at once")
                driver.terminate()
            case Step.KILL:
                self._monitor.message(f"{number(driver.kill())} had to be killed")

    def _take_happenings(self, driver: DriverProcess, timeout: float) -> None:
        for happening in driver.happenings(timeout):
            match happening:
                case Line():
                    self._monitor.show(happening)
                case Train() if self._wanted is None and (self._training is None or self._is_cancelled):
                    self._wanted, self._most = happening, happening.max_workers
                case Limit(most):
                    self._most = most
                    self._cap()
                case Cancel(training):
                    self._is_cancelled |= training == self._number
                case LeftBehind(count):
                    self._monitor.message(f"killed {number(count)} that the driver had left behind")
                case Train():
                    self._refuse(driver, f"{happening} before the training under way had ended")
                case Invalid(reason):
                    self._refuse(driver, reason)

    def _refuse(self, driver: DriverProcess, reason: str) -> None:
        self._invalid = self._invalid or reason
        driver.kill()

    # Training.

    def _train(self, driver: DriverProcess, request: Train) -> JobOutcome:
        most = min(request.max_workers, self._plan.limits.max_np)
        limits = SizeLimits(min(self._plan.limits.min_np, most), most)
        self._training, self._number, self._is_cancelled = limits, request.number, False
        self._cap()
        self._monitor.begin_training()
        elastic, workers = self._started_ahead(request, limits) or self._new(driver, request, limits)
        try:
            outcome = elastic.run()
        except EdtLaunchError as error:
            outcome = JobOutcome(error.exit_code, f"{PREFIX}{error}")
        self._pass_on(driver, workers)
        self._training, self._number = None, None
        now = time.monotonic()
        if elastic.ending.is_pausing:
            self._ending = self._ending.signalled(now, PAUSE_SIGNAL)
        if elastic.ending.first is not None:
            self._ending = self._ending.signalled(now, elastic.ending.first)
        return outcome

    def _new(self, driver: DriverProcess, request: Train, limits: SizeLimits) -> tuple[Elastic, WmlaWorkers]:
        checkpoints = self._prepared.layout.result.checkpoints(request.number)
        plan = replace(self._plan, limits=limits, checkpoint_dir=checkpoints)
        workers = self._prepared.workers(request.program)
        return Elastic(plan, workers, self._supervision, lambda: self._attend(driver, workers)), workers

    def _started_ahead(self, request: Train, limits: SizeLimits) -> tuple[Elastic, WmlaWorkers] | None:
        """What was started ahead, if it is what the driver wants; else nothing is left of it."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            elastic, workers = ahead
            is_same = request.number == 1 and limits.min_np == self._plan.limits.min_np
            if is_same and tuple(request.program[:3]) == tuple(
                workers.command[:3]
            ):  # paths have several names
                workers.command = request.program
                return ahead
            elastic.close()
        return None

    def _cap(self) -> None:
        """Have the training follow what the driver has said last; before and after it, do nothing."""
        if self._training is not None:
            self._allocations.cap(max(self._training.min_np, min(self._most, self._training.max_np)))

    def _pass_on(self, driver: DriverProcess, workers: WmlaWorkers) -> None:
        """Send the driver what its executors have told."""
        assert self._number is not None
        while not workers.received.empty():
            driver.send(ExecutorMessage(self._number, workers.received.get()))

    def _attend(self, driver: DriverProcess, workers: WmlaWorkers) -> bool:
        """Look after the driver while it trains; whether it still wants that."""
        self._pass_on(driver, workers)
        self._take_happenings(driver, 0)
        if driver.exit_code is not None and not self._is_torn:
            self._is_torn = True
            self._monitor.message(f"the driver {how(driver.exit_code)} in the middle of training")
        return not (self._is_torn or self._is_cancelled)

    # The end.

    def _conclude(self, exit_code: int) -> JobOutcome:
        """How the job ended, given the driver's exit code."""
        if self._ending.exit_code is not None:
            return JobOutcome(self._ending.exit_code, f"{PREFIX}ended by {signal_name(self._ending.first)}")
        if exit_code == 0 and not self._is_torn:
            return JobOutcome(ExitCode.SUCCESS)
        if self._ending.is_pausing:
            return self._left()
        log = self._monitor.logs.path_of(self._monitor.ranks.label(DRIVER))
        if self._last.exit_code != ExitCode.SUCCESS and not (self._is_torn or self._is_cancelled):
            text = f"{self._last.message}\nthe driver then {how(exit_code)}: {log}"
            return JobOutcome(ExitCode.JOB_FAILED, text)
        reason = f"its driver {how(exit_code)}{' in the middle of training' * self._is_torn}"
        if self._invalid:
            reason = f"its driver sent {self._invalid[:200]}; edt_hvd alone may write to its socket"
        lines = self._monitor.logs.last_lines(DRIVER)
        said = "".join(f"{QUOTE}{line}\n" for line in lines)
        cause = cause_of(lines)
        named = f"\n{CAUSE}{cause}" if cause else ""
        return JobOutcome(ExitCode.JOB_FAILED, f"{PREFIX}the job failed: {reason}\n{said}log: {log}{named}")

    def _left(self) -> JobOutcome:
        if self._last.exit_code == ExitCode.LEFT:
            return self._last
        advice = f"start it again with --result-dir {self._plan.paths.root}"
        return JobOutcome(ExitCode.LEFT, f"{PREFIX}the driver was ended outside of training; {advice}")
