"""What an agent does about its workers, as a pure function: what has happened in, what to do out.

=========  =============================================  ===============================================
phase      meaning                                        leaves it by
=========  =============================================  ===============================================
ASKED      the warm server has been asked for it          `Running`, `Refused`, a time limit
RUNNING    its process runs                               `Gone`, or `LifelineEnded` and a time limit
LINGERING  its process is gone; what it has started has   `Tick` when all of that is gone, `Kill`
           been asked to end
ENDED      its process is gone, its output is not at end  `OutputEnded`, a time limit
=========  =============================================  ===============================================

A worker is forgotten once `Exited` has been sent. The launcher hears of its end only after everything that
it has printed; a process that it has left behind and that keeps its output open delays that
by `LEFTOVER_GRACE` at most. When the launcher is gone, or the agent's lease has ended, all workers are
killed, and the agent ends with the last of them. It looks for their processes then, because the warm server,
which is killed with them, may have reaped a worker that it can no longer report.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf

from edt_launch.agent.protocol import (
    HEARTBEAT_INTERVAL,
    Exited,
    Heartbeat,
    Kill,
    LeaseExpired,
    Renew,
    Report,
    Start,
    Started,
    Terminate,
)

REQUEST_TIMEOUT = 120.0
"""Seconds without an answer after which a warm server counts as stopped. Its imports come before."""

LEFTOVER_GRACE = 2.0
"""Seconds that somebody else may keep a worker's output open after its end."""

STATUS_TIMEOUT = 5.0
"""Seconds after the end of a worker's lifeline in which its parent has to say how it ended."""

CLOSING_LOOK_INTERVAL = 0.2
"""Seconds between two looks whether the workers of a launcher that is gone still run."""

NOT_FOUND = 127
"""Exit code of a worker whose command cannot be run, as a shell has it."""


class ProcessPhase(Enum):
    """Where a worker stands; the table above says what each means."""

    ASKED = "asked"
    RUNNING = "running"
    LINGERING = "lingering"
    ENDED = "ended"


@dataclass(frozen=True)
class Process:
    """One worker, which came into its phase at a time `since`."""

    phase: ProcessPhase
    since: float
    pid: int | None = None
    is_killed: bool = False
    """Whether the launcher wants it killed."""
    is_asked: bool = False
    """Whether the launcher has asked it to end."""
    exit_code: int | None = None
    """What it said on its lifeline, or how it ended; None if unknown."""
    has_output: bool = True
    is_silent: bool = False
    """Whether its lifeline has ended, so that its process should have, too."""


# What happens, besides the launcher's `Start`, `Kill` and `Terminate`.


@dataclass(frozen=True)
class Running:
    """A worker's process runs; one that was forked waits until it may begin."""

    worker: int
    pid: int
    is_forked: bool = False


@dataclass(frozen=True)
class Refused:
    """The warm server is gone, or does not fork."""

    worker: int


@dataclass(frozen=True)
class LifelineEnded:
    """Nobody has a worker's end of its lifeline any more; it has said how it ends, or None."""

    worker: int
    exit_code: int | None


@dataclass(frozen=True)
class Gone:
    """A worker's process has ended, or its command cannot be run."""

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
    """Time has passed; `living` are workers that are silent or linger, and have processes all the same."""

    living: frozenset[int] = frozenset()


_WorkerEvent = Terminate | Kill | Running | Refused | LifelineEnded | Gone | OutputEnded
Event = _WorkerEvent | Start | Renew | Closed | Tick


class Verb(Enum):
    """What to do about a worker."""

    FORK = "ask the warm server for it"
    EXECUTE = "run its command"
    RELEASE = "let it begin, as it was forked"
    TERMINATE = "send its process SIGTERM"
    TERMINATE_OTHERS = "send SIGTERM to what it has started"
    KILL = "kill it and everything that it has started"
    CLOSE_LIFELINE = "have the kernel kill what is left of its process group"
    FORGET = "close everything of it"


@dataclass(frozen=True)
class Do:
    """Do something about a worker; `reason` is why it is not forked, if that is news."""

    verb: Verb
    worker: int
    reason: str = ""


Action = Do | Report
"""What to do. A report is to be sent."""

_Step = tuple["State", list[Action]]


@dataclass(frozen=True)
class Lease:
    """For how long an agent may go on without its launcher."""

    duration: float
    renewed_at: float
    heartbeat_at: float
    """When the next heartbeat is due."""

    @property
    def expires_at(self) -> float:
        """When it ends, unless it is renewed."""
        return self.renewed_at + self.duration


@dataclass(frozen=True)
class State:
    """The workers of an agent."""

    can_fork: bool
    lease: Lease | None = None
    """None if only the end of its input ends the agent."""
    processes: Mapping[int, Process] = field(default_factory=dict)
    """Of the workers that have not been forgotten."""
    is_closing: bool = False
    """Whether the launcher is gone."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be done."""
        return self.is_closing and not self.processes


def step(now: float, state: State, event: Event) -> _Step:
    """The next state and what to do, given what happened.

    An event of a worker that is forgotten, or too late for its phase, changes nothing. A lease that has ended
    comes before the event: after a time in which the whole host stood still, an answer may be waiting.
    """
    actions: list[Action] = []
    lease = state.lease
    if lease is not None and now >= lease.expires_at and not state.is_closing:
        state, actions = _step(now, state, Closed())
        actions.insert(0, LeaseExpired(lease.duration))
    state, more = _step(now, state, event)
    return state, actions + more


def _step(now: float, state: State, event: Event) -> _Step:
    match event:
        case Renew(sent_at):
            return replace(state, lease=_renewed(now, state.lease, sent_at)), []
        case Start(worker):
            return _start(now, state, worker)
        case Closed():
            return _close(now, replace(state, is_closing=True, can_fork=False))
        case Tick(living):
            return _tick(now, state, living)
    process = state.processes.get(event.worker)
    return (state, []) if process is None else _of_worker(now, state, process, event)


def _renewed(now: float, lease: Lease | None, sent_at: float) -> Lease | None:
    """The lease from when a heartbeat was sent; the answer to an earlier one takes nothing back."""
    if lease is None:
        return None
    return replace(lease, renewed_at=max(lease.renewed_at, min(sent_at, now)))


def _of_worker(now: float, state: State, process: Process, event: _WorkerEvent) -> _Step:
    match event, process.phase:
        case Kill(worker), ProcessPhase.ASKED | ProcessPhase.RUNNING | ProcessPhase.LINGERING:
            return _kill(now, state, worker)
        case Terminate(worker), ProcessPhase.ASKED:  # it has not begun
            return _kill(now, state, worker)
        case Terminate(worker, others), ProcessPhase.RUNNING:
            verb = Verb.TERMINATE_OTHERS if others else Verb.TERMINATE
            return _with(state, worker, replace(process, is_asked=True)), [Do(verb, worker)]
        case Running(worker, pid, is_forked), ProcessPhase.ASKED if not process.is_killed:
            running = replace(process, phase=ProcessPhase.RUNNING, since=now, pid=pid)
            release = [Do(Verb.RELEASE, worker)] if is_forked else []
            return _with(state, worker, running), [Started(worker, pid), *release]
        case Refused(worker), ProcessPhase.ASKED if not process.is_killed:
            return state, [Do(Verb.EXECUTE, worker)]
        case LifelineEnded(worker, exit_code), ProcessPhase.RUNNING:
            return _with(state, worker, replace(process, is_silent=True, since=now, exit_code=exit_code)), []
        case Gone(worker, exit_code), ProcessPhase.RUNNING if process.is_asked and not process.is_killed:
            lingering = replace(process, phase=ProcessPhase.LINGERING, since=now, exit_code=exit_code)
            return _with(state, worker, lingering), [Do(Verb.TERMINATE_OTHERS, worker)]
        case Gone(worker, exit_code), ProcessPhase.ASKED | ProcessPhase.RUNNING:
            return _end(now, state, worker, exit_code)
        case OutputEnded(worker), phase:
            state = _with(state, worker, replace(process, has_output=False))
            return _forget(state, worker) if phase is ProcessPhase.ENDED else (state, [])
    return state, []


def _with(state: State, worker: int, process: Process) -> State:
    return replace(state, processes={**state.processes, worker: process})


def _start(now: float, state: State, worker: int) -> _Step:
    if state.is_closing or worker in state.processes:
        return state, []
    verb = Verb.FORK if state.can_fork else Verb.EXECUTE
    return _with(state, worker, Process(ProcessPhase.ASKED, now)), [Do(verb, worker)]


def _kill(now: float, state: State, worker: int) -> _Step:
    """Kill a worker. One that is still to be forked never begins, because its lifeline has ended."""
    process = replace(state.processes[worker], is_killed=True)
    state = _with(state, worker, process)
    if process.phase is ProcessPhase.ASKED:
        return _end(now, state, worker, -signal.SIGKILL)
    if process.phase is ProcessPhase.LINGERING:
        assert process.exit_code is not None
        return _end(now, state, worker, process.exit_code)
    return state, [Do(Verb.KILL, worker)]


def _end(now: float, state: State, worker: int, exit_code: int) -> _Step:
    process = state.processes[worker]
    state = _with(state, worker, replace(process, phase=ProcessPhase.ENDED, since=now, exit_code=exit_code))
    actions: list[Action] = [Do(Verb.CLOSE_LIFELINE, worker)]
    if process.is_killed:  # what it was just starting when the others were killed is left
        actions.insert(0, Do(Verb.KILL, worker))
    if process.has_output:
        return state, actions
    state, more = _forget(state, worker)
    return state, actions + more


def _forget(state: State, worker: int) -> _Step:
    process = state.processes[worker]
    assert process.exit_code is not None
    others = {key: other for key, other in state.processes.items() if key != worker}
    exited = Exited(worker, process.exit_code, has_begun=process.pid is not None or process.is_killed)
    return replace(state, processes=others), [Do(Verb.FORGET, worker), exited]


def _close(now: float, state: State) -> _Step:
    """Kill every worker; the agent ends with the last one."""
    killed = {worker: replace(process, is_killed=True) for worker, process in state.processes.items()}
    for worker, process in killed.items():
        if process.phase is ProcessPhase.RUNNING:
            killed[worker] = replace(process, is_silent=True, since=now)
    verbs = (Verb.KILL, Verb.CLOSE_LIFELINE)
    return replace(state, processes=killed), [Do(verb, worker) for worker in killed for verb in verbs]


def _tick(now: float, state: State, living: frozenset[int]) -> _Step:
    actions: list[Action] = []
    if state.lease is not None and now >= state.lease.heartbeat_at and not state.is_closing:
        state = replace(state, lease=replace(state.lease, heartbeat_at=now + HEARTBEAT_INTERVAL))
        actions.append(Heartbeat(now))
    for worker, process in state.processes.items():
        if now < _deadline(state, process):
            continue
        more: list[Action] = []
        match process.phase:
            case ProcessPhase.ASKED if state.is_closing:  # its lifeline is closed: it never begins
                state, more = _end(now, state, worker, -signal.SIGKILL)
            case ProcessPhase.ASKED:
                state = _with(state, worker, replace(process, since=now))
                reason = f"the warm server has not answered for {REQUEST_TIMEOUT:g} s"
                more = [Do(Verb.EXECUTE, worker, reason)]
            case ProcessPhase.RUNNING | ProcessPhase.LINGERING if worker in living and not state.is_closing:
                state = _with(state, worker, replace(process, since=now))
            case ProcessPhase.RUNNING if worker in living:
                state = _with(state, worker, replace(process, since=now))
            case ProcessPhase.RUNNING | ProcessPhase.LINGERING:
                exit_code = process.exit_code if process.exit_code is not None else -signal.SIGKILL
                state, more = _end(now, state, worker, exit_code)
            case ProcessPhase.ENDED:
                state, more = _forget(state, worker)
        actions += more
    return state, actions


def silent(state: State) -> dict[int, int]:
    """The workers whose lifeline has ended, with their processes: somebody has to look whether they run."""
    return {
        w: p.pid
        for w, p in state.processes.items()
        if p.is_silent and p.pid and p.phase is ProcessPhase.RUNNING
    }


def lingering(state: State) -> dict[int, int | None]:
    """The workers whose processes have ended, with the numbers of these: what they have started may run."""
    return {w: p.pid for w, p in state.processes.items() if p.phase is ProcessPhase.LINGERING}


def deadline(state: State) -> float | None:
    """When a `Tick` is due at the latest, by the same clock; None if none is."""
    due = [_deadline(state, process) for process in state.processes.values()]
    if state.lease is not None and not state.is_closing:
        due += (state.lease.heartbeat_at, state.lease.expires_at)
    first = min(due, default=inf)
    return None if first == inf else first


def _deadline(state: State, process: Process) -> float:
    match process.phase:
        case ProcessPhase.ASKED:
            return process.since + (0.0 if state.is_closing else REQUEST_TIMEOUT)
        case ProcessPhase.ENDED:
            return process.since + LEFTOVER_GRACE
        case ProcessPhase.LINGERING:
            return process.since + CLOSING_LOOK_INTERVAL
        case ProcessPhase.RUNNING:
            timeout = CLOSING_LOOK_INTERVAL if state.is_closing else STATUS_TIMEOUT
            return process.since + timeout if process.is_silent else inf
