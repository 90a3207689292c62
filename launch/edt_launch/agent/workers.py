"""What an agent does about its workers, as a pure function: what has happened in, what to do out.

=========  =============================================  ===============================================
phase      meaning                                        leaves it by
=========  =============================================  ===============================================
ASKED      the warm server has been asked for it          `Forked`, `Refused`, a time limit
RUNNING    its process runs                               `Gone`, or `LifelineEnded` and a time limit
ENDED      its process is gone, its output is not at end  `OutputEnded`, a time limit
=========  =============================================  ===============================================

A worker is forgotten once `Exited` has been sent. The launcher hears of its end only after everything that
it has printed; a process that it has left behind and that keeps its output open delays that
by `LEFTOVER_GRACE` at most. When the launcher is gone, all workers are killed, and the agent ends with the
last of them.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from edt_launch.agent.protocol import Exited, Kill, Report, Start, Started

REQUEST_TIMEOUT = 120.0
"""Seconds without an answer after which a warm server counts as stopped. Its imports come before."""

LEFTOVER_GRACE = 2.0
"""Seconds that somebody else may keep a worker's output open after its end."""

STATUS_TIMEOUT = 5.0
"""Seconds after the end of a worker's lifeline in which its parent has to say how it ended."""

NOT_FOUND = 127
"""Exit code of a worker whose command cannot be run, as a shell has it."""


class Phase(Enum):
    """Where a worker stands; the table above says what each means."""

    ASKED = "asked"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True)
class Process:
    """One worker.

    Attributes:
        since: when it came into its phase.
        pid: its process; None while that is not known.
        is_killed: whether the launcher wants it killed.
        exit_code: what it said on its lifeline, or how it ended; None if unknown.
        has_output: whether more of its output may come.
        is_silent: whether its lifeline has ended, so that its process should have, too.
    """

    phase: Phase
    since: float
    pid: int | None = None
    is_killed: bool = False
    exit_code: int | None = None
    has_output: bool = True
    is_silent: bool = False


# What happens, besides the launcher's `Start` and `Kill`.


@dataclass(frozen=True)
class Forked:
    """The warm server has forked a worker."""

    worker: int
    pid: int


@dataclass(frozen=True)
class Refused:
    """The warm server is gone, or does not fork."""

    worker: int


@dataclass(frozen=True)
class Executed:
    """A worker's command runs, without a warm server."""

    worker: int
    pid: int


@dataclass(frozen=True)
class NotExecuted:
    """A worker's command cannot be run."""

    worker: int


@dataclass(frozen=True)
class LifelineEnded:
    """Nobody has a worker's end of its lifeline any more; it has said how it ends, or None."""

    worker: int
    exit_code: int | None


@dataclass(frozen=True)
class Gone:
    """A worker's process has ended."""

    worker: int
    exit_code: int


@dataclass(frozen=True)
class OutputEnded:
    """Nothing more comes from a worker."""

    worker: int


@dataclass(frozen=True)
class Closed:
    """The launcher is gone."""


@dataclass(frozen=True)
class Tick:
    """Time has passed; `living` are the processes of workers that are silent, and run all the same."""

    living: frozenset[int] = frozenset()


Event = (
    Start
    | Kill
    | Forked
    | Refused
    | Executed
    | NotExecuted
    | LifelineEnded
    | Gone
    | OutputEnded
    | Closed
    | Tick
)

# What to do.


@dataclass(frozen=True)
class Fork:
    """Ask the warm server for a worker."""

    worker: int
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Execute:
    """Run a worker's command; `reason` is why it is not forked, if that is news."""

    worker: int
    reason: str = ""


@dataclass(frozen=True)
class Release:
    """Let a forked worker begin."""

    worker: int


@dataclass(frozen=True)
class KillAll:
    """Kill a worker and everything that it has started."""

    worker: int


@dataclass(frozen=True)
class CloseLifeline:
    """Have the kernel kill what is left of a worker's process group."""

    worker: int


@dataclass(frozen=True)
class Forget:
    """Close everything of a worker."""

    worker: int


@dataclass(frozen=True)
class Send:
    """Tell the launcher."""

    report: Report


@dataclass(frozen=True)
class End:
    """Nothing is left to be done."""


Action = Fork | Execute | Release | KillAll | CloseLifeline | Forget | Send | End


@dataclass(frozen=True)
class State:
    """The workers of an agent.

    Attributes:
        can_fork: whether a warm server may be asked.
        processes: the workers that have not been forgotten.
        is_closing: whether the launcher is gone.
    """

    can_fork: bool
    processes: Mapping[int, Process] = field(default_factory=dict)
    is_closing: bool = False


def step(now: float, state: State, event: Event) -> tuple[State, list[Action]]:
    """The next state and what to do, given what happened.

    Args:
        now: seconds of a monotonic clock.
        state: the state so far.
        event: what happened. One of a worker that is forgotten, or too late for its phase, changes nothing.
    """
    match event:
        case Start(worker, environment):
            return _start(now, state, worker, environment)
        case Closed():
            return _close(replace(state, is_closing=True, can_fork=False))
        case Tick(living):
            return _tick(now, state, living)
    process = state.processes.get(event.worker)
    return (state, []) if process is None else _of_worker(now, state, process, event)


_WorkerEvent = Kill | Forked | Refused | Executed | NotExecuted | LifelineEnded | Gone | OutputEnded


def _of_worker(now: float, state: State, process: Process, event: _WorkerEvent) -> tuple[State, list[Action]]:
    """Something has happened to a worker that is not forgotten."""
    match event, process.phase:
        case Kill(worker), Phase.ASKED | Phase.RUNNING:
            return _kill(now, state, worker)
        case Forked(worker, pid), Phase.ASKED if not process.is_killed:
            running = replace(process, phase=Phase.RUNNING, since=now, pid=pid)
            return _with(state, worker, running), [Send(Started(worker, pid)), Release(worker)]
        case Refused(worker), Phase.ASKED if not process.is_killed:
            return state, [Execute(worker)]
        case Executed(worker, pid), Phase.ASKED:
            running = replace(process, phase=Phase.RUNNING, since=now, pid=pid)
            return _with(state, worker, running), [Send(Started(worker, pid))]
        case NotExecuted(worker), Phase.ASKED:
            return _end(now, state, worker, NOT_FOUND)
        case LifelineEnded(worker, exit_code), Phase.RUNNING:
            silent = replace(process, is_silent=True, since=now, exit_code=exit_code)
            return _with(state, worker, silent), []
        case Gone(worker, exit_code), Phase.RUNNING:
            return _end(now, state, worker, exit_code)
        case OutputEnded(worker), phase:
            state = _with(state, worker, replace(process, has_output=False))
            return _forget(state, worker) if phase is Phase.ENDED else (state, [])
    return state, []


def _with(state: State, worker: int, process: Process) -> State:
    return replace(state, processes={**state.processes, worker: process})


def _start(
    now: float, state: State, worker: int, environment: Mapping[str, str]
) -> tuple[State, list[Action]]:
    if state.is_closing or worker in state.processes:
        return state, []
    state = _with(state, worker, Process(Phase.ASKED, now))
    return state, [Fork(worker, environment) if state.can_fork else Execute(worker)]


def _kill(now: float, state: State, worker: int) -> tuple[State, list[Action]]:
    """Kill a worker. One that is still to be forked never begins, because its lifeline has ended."""
    process = replace(state.processes[worker], is_killed=True)
    state = _with(state, worker, process)
    if process.phase is Phase.ASKED:
        return _end(now, state, worker, -signal.SIGKILL)
    return state, [KillAll(worker)]


def _end(now: float, state: State, worker: int, exit_code: int) -> tuple[State, list[Action]]:
    """A worker's process is gone."""
    process = state.processes[worker]
    ended = replace(process, phase=Phase.ENDED, since=now, exit_code=exit_code)
    state = _with(state, worker, ended)
    # What it was just starting when the others were killed is left.
    actions: list[Action] = [*([KillAll(worker)] if process.is_killed else []), CloseLifeline(worker)]
    if process.has_output:
        return state, actions
    state, more = _forget(state, worker)
    return state, actions + more


def _forget(state: State, worker: int) -> tuple[State, list[Action]]:
    """Everything that a worker has printed has been sent."""
    exit_code = state.processes[worker].exit_code
    assert exit_code is not None
    left = {key: other for key, other in state.processes.items() if key != worker}
    state = replace(state, processes=left)
    actions: list[Action] = [Forget(worker), Send(Exited(worker, exit_code))]
    return state, [*actions, End()] if state.is_closing and not left else actions


def _close(state: State) -> tuple[State, list[Action]]:
    """Kill every worker; the agent ends with the last one."""
    if not state.processes:
        return state, [End()]
    actions: list[Action] = []
    for worker, process in state.processes.items():
        state = _with(state, worker, replace(process, is_killed=True))
        actions += [KillAll(worker), CloseLifeline(worker)]
    return state, actions


def _tick(now: float, state: State, living: frozenset[int]) -> tuple[State, list[Action]]:
    actions: list[Action] = []
    for worker, process in state.processes.items():
        waited = now - process.since
        more: list[Action] = []
        match process.phase:
            case Phase.ASKED if state.is_closing:  # its lifeline is closed: it never begins
                state, more = _end(now, state, worker, -signal.SIGKILL)
            case Phase.ASKED if waited >= REQUEST_TIMEOUT:
                state = _with(state, worker, replace(process, since=now))
                more = [Execute(worker, f"the warm server has not answered for {REQUEST_TIMEOUT:g} s")]
            case Phase.RUNNING if process.is_silent and waited >= STATUS_TIMEOUT and worker in living:
                state = _with(state, worker, replace(process, since=now))
            case Phase.RUNNING if process.is_silent and waited >= STATUS_TIMEOUT:
                exit_code = process.exit_code if process.exit_code is not None else -signal.SIGKILL
                state, more = _end(now, state, worker, exit_code)
            case Phase.ENDED if waited >= LEFTOVER_GRACE:
                state, more = _forget(state, worker)
        actions += more
    return state, actions


def silent(state: State) -> dict[int, int]:
    """The workers whose lifeline has ended, with their processes: somebody has to look whether they run."""
    return {
        w: p.pid for w, p in state.processes.items() if p.is_silent and p.pid and p.phase is Phase.RUNNING
    }


def deadline(state: State) -> float | None:
    """When a `Tick` is due at the latest, by the same clock; None if none is."""
    limits = []
    for process in state.processes.values():
        match process.phase:
            case Phase.ASKED:
                limits.append(process.since + (0.0 if state.is_closing else REQUEST_TIMEOUT))
            case Phase.ENDED:
                limits.append(process.since + LEFTOVER_GRACE)
            case Phase.RUNNING if process.is_silent:
                limits.append(process.since + STATUS_TIMEOUT)
    return min(limits, default=None)
