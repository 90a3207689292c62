"""What the launcher and an agent may say when. Pure; the agent checks orders by it, the launcher reports.

=======  ================================  ==================================
phase    of a worker                       what may be said of it
=======  ================================  ==================================
(none)   the launcher has not named it     `Start`
ASKED    it is to be started               `Started`, `Output`, `Exited`
STARTED  its process runs                  `Output`, `Exited`
ENDED    it has ended                      nothing
=======  ================================  ==================================

`Terminate` and `Kill` may come at any time, since the end of a worker may be on its way; so may the end of
either side. An answer needs a question, and answers it once. A connection neither repeats nor reorders, so
that whoever speaks out of turn is broken or lies, and must not decide about the workers of other hosts.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from enum import Enum

from edt_launch.agent.protocol import (
    CODE,
    STREAMS,
    Close,
    Code,
    Exited,
    Fetch,
    Fetched,
    Heartbeat,
    Hello,
    Left,
    List,
    Listed,
    Listen,
    Listening,
    Order,
    Output,
    Probe,
    Probed,
    ProtocolError,
    Put,
    Report,
    Reserve,
    Reserved,
    Setup,
    Start,
    Started,
    Stored,
    Swept,
    Want,
)

MAX_PORT = 65535


class WorkerPhase(Enum):
    """What is known of a worker; the table above says what each means."""

    ASKED = "was asked for"
    STARTED = "runs"
    ENDED = "has ended"


_NEXT: Mapping[tuple[WorkerPhase | None, type], WorkerPhase] = {
    (None, Start): WorkerPhase.ASKED,
    (WorkerPhase.ASKED, Started): WorkerPhase.STARTED,
    (WorkerPhase.ASKED, Output): WorkerPhase.ASKED,
    (WorkerPhase.STARTED, Output): WorkerPhase.STARTED,
    (WorkerPhase.ASKED, Exited): WorkerPhase.ENDED,
    (WorkerPhase.STARTED, Exited): WorkerPhase.ENDED,
}


class Conversation:
    """What has been said over one connection. Whoever checks one side only takes the other on trust.

    Args:
        checks_reports: whether reports are checked; only then open questions are kept.
    """

    def __init__(self, checks_reports: bool = True) -> None:
        self._checks_reports = checks_reports
        self._setup: Setup | None = None
        self._has_hello = False
        self._workers: dict[int, WorkerPhase] = {}
        self._open: Counter[Hashable] = Counter()
        """Questions without an answer."""
        self._heartbeat_at = float("-inf")

    def order(self, order: Order) -> None:
        """The launcher says something.

        Raises:
            ProtocolError: not now.
        """
        if isinstance(order, Close):
            return
        if isinstance(order, Setup) is not (self._setup is None):
            raise ProtocolError("a second Setup" if isinstance(order, Setup) else _early(order, "Setup"))
        if isinstance(order, Setup):
            self._setup = order
        elif isinstance(order, Start):
            self._step(order)
        elif self._checks_reports and (question := _question_of(order)) is not None:
            self._open[question] += 1

    def report(self, report: Report) -> None:
        """The agent says something.

        Raises:
            ProtocolError: not now, or it makes no sense.
        """
        if isinstance(report, Swept | Left):
            return
        if isinstance(report, Hello):
            self._greet(report)
        elif not self._has_hello:
            raise ProtocolError(_early(report, "Hello"))
        elif isinstance(report, Started | Output | Exited):
            self._step(report)
        elif isinstance(report, Heartbeat):
            if report.sent_at < self._heartbeat_at:
                raise ProtocolError(f"a Heartbeat of {report.sent_at:g} after that of {self._heartbeat_at:g}")
            self._heartbeat_at = report.sent_at
        elif (answered := _answered_by(report)) is not None:
            self._answer(report, answered)

    def _greet(self, hello: Hello) -> None:
        if self._has_hello:
            raise ProtocolError("a second Hello")
        if hello.folder is not None and (self._setup is None or self._setup.output is None):
            raise ProtocolError("a Hello with a folder, though it sees the output directory")
        self._has_hello = True

    def _step(self, message: Start | Started | Output | Exited) -> None:
        phase = self._workers.get(message.worker)
        after = _NEXT.get((phase, type(message)))
        if after is None:
            known = "is not its own" if phase is None else f"{phase.value} already"
            raise ProtocolError(f"{type(message).__name__} of worker {message.worker}, which {known}")
        if isinstance(message, Output) and message.stream not in STREAMS:
            raise ProtocolError(
                f"Output of a stream {message.stream!r:.20}: there are {' and '.join(STREAMS)}"
            )
        self._workers[message.worker] = after

    def _answer(self, report: Report, question: Hashable) -> None:
        if not self._open[question]:
            raise ProtocolError(f"{type(report).__name__} without having been asked")
        if isinstance(report, Reserved | Listening) and not 0 < report.port <= MAX_PORT:
            raise ProtocolError(f"{type(report).__name__} with port {report.port}: there are 1 to {MAX_PORT}")
        if not isinstance(report, Want):
            self._open[question] -= 1
            if not self._open[question]:
                del self._open[question]


def _early(message: Order | Report, first: str) -> str:
    return f"{type(message).__name__} before its {first}"


def _question_of(order: Order) -> Hashable | None:
    """What an order asks for; None if it needs no answer."""
    match order:
        case Reserve():
            return Reserve
        case Listen():
            return Listen
        case List():
            return List
        case Probe(number):
            return Probe, number
        case Code():
            return Put, CODE
        case Put(path):
            return Put, path
        case Fetch(path, offset):
            return Fetch, path, offset
    return None


def _answered_by(report: Report) -> Hashable | None:
    """The question that a report answers; None if it needs none."""
    match report:
        case Reserved():
            return Reserve
        case Listening():
            return Listen
        case Listed():
            return List
        case Probed(number):
            return Probe, number
        case Want(path) | Stored(path):
            return Put, path
        case Fetched(path, offset):
            return Fetch, path, offset
    return None
