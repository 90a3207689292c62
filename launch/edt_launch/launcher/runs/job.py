"""One job from its first process to its last: what it leaves behind, and who is told how it ended."""

import contextlib
import json
import os
import signal
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any

from edt_launch.agent.system import processes
from edt_launch.core.errors import EdtLaunchError, ExitCode, ResourceError, UsageError, is_passing
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.history import event_log, events
from edt_launch.core.history.result_file import LauncherResult, ResultFile
from edt_launch.launcher.plan import JobOutcome, Plan
from edt_launch.launcher.program import LaunchedJob, Program
from edt_launch.launcher.runs.control_socket import ControlSocket, as_signals
from edt_launch.launcher.termination import CODES, PAUSE_SIGNAL
from edt_launch.launcher.view.view import View


class ReceivedSignals(list[int]):
    """The signals that end or pause a job, as they come.

    `preempted_by`: the latest that means a preemption.
    """

    preempted_by: int | None = None


@contextlib.contextmanager
def received_signals(preemption: Collection[int] = ()) -> Iterator[ReceivedSignals]:
    """Collect the signals that end or pause a job; those of `preemption` pause it, too."""
    received = ReceivedSignals()

    def receive(number: int, _: object) -> None:
        if number in preemption:
            received.preempted_by = number
            number = PAUSE_SIGNAL
        received.append(number)

    numbers = {*CODES, PAUSE_SIGNAL, *preemption}
    previous = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run(program: Program, plan: Plan, view: View, signals: list[int]) -> JobOutcome:
    """Run a job to its end. No process of it is left on this machine, whatever happens.

    `signals` grows by the signals that this process receives; see `received_signals`.

    Raises:
        UsageError: a host, the interface or the output directory is wrong.
        StartError: there were not enough slots in time, or an agent cannot be executed.
    """
    with (
        plan.paths.opened(program.output_option),
        ControlSocket(plan.paths.control, view.message) as control,
    ):
        me: dict[str, Any] = {"pid": os.getpid(), "started": processes.started(os.getpid())}
        me |= asdict(plan.limits)
        try:
            log = event_log.EventLog(plan.paths.events, view.message)
            result = ResultFile(plan.paths.result)
            write_atomically(plan.paths.launcher, json.dumps(me) + "\n")
        except OSError as error:
            what = f"{program.output_option} {plan.paths.root}: {error.filename or 'a file in it'}"
            kind = ResourceError if is_passing(error) else UsageError
            raise kind(f"{what}: {error.strerror}; make room, or name another folder") from error
        outcome = JobOutcome(ExitCode.INTERNAL)
        try:
            log.write(event_log.stamped(events.Begun(**me)))
            outcome = program.run(LaunchedJob(plan, view, log, lambda: _received(signals, control)))
        except EdtLaunchError as error:
            outcome = JobOutcome(error.exit_code, str(error))
            raise
        except OSError as error:
            if not is_passing(error):
                raise
            what = f"{error.filename}: " if error.filename else ""
            outcome = JobOutcome(
                ExitCode.OUT_OF_RESOURCES,
                f"edt-launch: {what}{error.strerror}; all workers have ended: make room, and start it again",
            )
        finally:
            last = events.Ended(int(outcome.exit_code), outcome.message, outcome.worker_exit_code)
            log.write(event_log.stamped(last))
            log.close()
            ended = LauncherResult(me["pid"], me["started"], int(outcome.exit_code), outcome.message)
            result.write(ended)
            result.close()
    return outcome


def _received(signals: list[int], control: ControlSocket) -> Iterator[int]:
    while signals:
        yield signals.pop(0)
    for request in control.requests():
        yield from as_signals(request)
