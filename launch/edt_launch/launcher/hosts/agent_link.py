"""What is said to an agent, when, and which of its answers are late. It asks no clock."""

import asyncio
from dataclasses import replace

from edt_launch.agent import encoding, protocol
from edt_launch.agent.conversation import Conversation
from edt_launch.agent.ports import PORT_VARIABLE


class AgentLink:
    """Orders for an agent, from when it was asked for, and what it owes.

    Attributes:
        orders: where they are written; None until the agent is connected.
        has_connected: whether the agent has said hello; orders but `Setup` wait for that.
        listening_at: the port at which it accepts connections of other agents; None if it does not yet.
        silence: seconds since anything has come from the agent, once it has said hello.
    """

    def __init__(self) -> None:
        self.orders: asyncio.WriteTransport | None = None
        self.has_connected = False
        self.listening_at: int | None = None
        self.silence = 0.0
        self._conversation = Conversation()
        self._unsent: list[protocol.Order] = []
        """What is to be sent after the hello."""
        self._unanswered: dict[int, float] = {}
        """Workers that are to be started, and for how many seconds."""
        self._waited = 0.0
        """Seconds without a hello, or without the port that it is to reserve."""
        self._port: int | None = None
        self._meeting: list[tuple[AgentLink, protocol.Start]] = []
        """Workers that are to be started when the port is known, and where."""

    def put(self, order: protocol.Order) -> None:
        """Send an order as soon as may be."""
        if self.has_connected:
            self.write(order)
        else:
            self._unsent.append(order)

    def write(self, order: protocol.Order) -> None:
        """Send an order now, if there is somebody to read it."""
        self._conversation.order(order)
        if isinstance(order, protocol.Start):
            self._unanswered[order.worker] = 0.0
        if self.orders is not None and not self.orders.is_closing():
            self.orders.write(encoding.write(order))

    def start_with_port(self, link: "AgentLink", order: protocol.Start) -> None:
        """Start a worker over a link, with the port that this agent has reserved."""
        if not self._meeting and self._port is None:
            self.put(protocol.Reserve())
        self._meeting.append((link, order))
        self._start_meeting()

    def greet(self) -> None:
        """The agent has said hello, and has the program's files."""
        self.has_connected = True
        while self._unsent:
            self.write(self._unsent.pop(0))

    def is_heard(self) -> None:
        """Something has come from the agent."""
        self.silence = 0.0

    def moves_files(self) -> None:
        """The agent has said something about a file; it is not late then."""
        self._waited = 0.0

    def check(self, report: protocol.Report) -> None:
        """Note what a report answers.

        Raises:
            ProtocolError: it may not come now.
        """
        self._conversation.report(report)
        match report:
            case protocol.Reserved(port):
                self._port = port
                self._start_meeting()
            case protocol.Listening(port):
                self.listening_at = port
            case protocol.Started(worker) | protocol.Exited(worker):
                self._unanswered.pop(worker, None)

    def overdue(self, seconds: float, limit: float) -> str | None:
        """What the agent should have done by now, so many seconds after the last call; None if nothing."""
        self.silence = self.silence + seconds if self.has_connected else 0.0
        self._waited = self._waited + seconds if self._meeting or not self.has_connected else 0.0
        if self._waited > limit:
            return "reserved a port" if self.has_connected else "said hello"
        for worker in self._unanswered:
            self._unanswered[worker] += seconds
        late = [worker for worker, waited in self._unanswered.items() if waited > limit]
        return f"started worker {late[0]}" if late else None

    def _start_meeting(self) -> None:
        while self._port is not None and self._meeting:
            link, order = self._meeting.pop(0)
            link.put(replace(order, environment={**order.environment, PORT_VARIABLE: str(self._port)}))
