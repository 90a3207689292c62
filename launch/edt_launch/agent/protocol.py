"""The messages between the launcher and an agent, in one stream in each direction; `encoding` writes them.

The launcher sends `Setup` first, once. The end of its stream means: kill whatever is still there, and end.
The agent sends `Hello` first, and `Swept` last. An agent with a lease sends a `Heartbeat` every second, which
the launcher answers with `Renew`; when none has been answered for the length of the lease, the agent acts as
if the stream had ended. The lease counts from when a heartbeat was sent, so that an answer which was under
way for long extends it by as much less.

A host that does not see the job's output directory names a folder of its own in `Hello`. It gets `Code` then,
before anything is started. Files come and go in pieces; whoever receives a file asks for each piece, so that
one is under way at a time: the agent by `Want` after `Code` or `Put`, until `Stored`; the launcher by
`Fetch`.

Standard library only: every host starts an agent, and workers wait for it.
"""

from dataclasses import dataclass

VERSION = 8
"""Of these messages; launcher and agent must have the same."""

WINDOW = 2**20
"""Bytes of output that an agent sends before it waits for `WindowUpdate`."""

MAX_PIECE = 2**20
"""Bytes of a file that one message has at most."""

STREAMS = ("stdout", "stderr")
"""What a worker prints to."""

CODE = "code"
"""What the archive of the program's files is called in `Want`, `Piece` and `Stored`."""

NONCE = "run/nonce"
"""The file of the output directory by which a host finds out whether it sees that."""

HEARTBEAT_INTERVAL = 1.0
"""Seconds between two heartbeats of an agent that has a lease."""

LEASE = 15.0
"""Seconds for which the agent of another host may go on without an answer to a heartbeat. Whoever has heard
nothing of it for twice as long knows that its workers are gone.
"""


class ProtocolError(ValueError):
    """The other side has sent something that is no message of this protocol."""


@dataclass(frozen=True)
class Setup:
    """What all workers of a job have in common."""

    command: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    forks: bool = True
    """Whether workers may be forked from a warm server."""
    log: str | None = None
    """The warm server's."""
    inherits: bool = False
    """Whether the agent's own variables are passed on, too, behind the others."""
    sweeps: bool = False
    """Whether processes that an earlier agent of the job has left on the host are killed first."""
    lease: float | None = None
    """Seconds for which the agent may run without an answer to a heartbeat; None: until its input ends."""
    output: str | None = None
    """The job's output directory; None if it need not be asked whether the host sees it."""
    nonce: str = ""
    """The text of the file `NONCE` in it."""
    python: str = ""
    """The launcher's interpreter; the agent's own takes its place in commands."""


@dataclass(frozen=True)
class Start:
    """Start the worker with this serial number; `environment` is its own, in front of the job's.

    `command` is its own, too, if it is not empty.
    """

    worker: int
    environment: dict[str, str]
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Terminate:
    """Send SIGTERM to a worker's process; with `others`, to those that it has started instead.

    Once its process has ended, those that it has started get it, too, and are waited for.
    """

    worker: int
    others: bool = False


@dataclass(frozen=True)
class Kill:
    """Kill a worker and everything that it has started."""

    worker: int


@dataclass(frozen=True)
class Reserve:
    """Reserve a port of the host, as long as the agent lives."""


@dataclass(frozen=True)
class WindowUpdate:
    """The launcher has dealt with `size` bytes of output: the agent may send as many more."""

    size: int


@dataclass(frozen=True)
class Close:
    """As the end of the launcher's stream, for connections whose streams end together."""


@dataclass(frozen=True)
class Renew:
    """The lease begins anew, at the time `sent_at` of the heartbeat that this answers."""

    sent_at: float


@dataclass(frozen=True)
class Listen:
    """Accept connections of other agents, so that they can find out whether they reach this host."""


@dataclass(frozen=True)
class Probe:
    """Find out which hosts can be reached, at these addresses ("192.0.2.1:5000", say)."""

    number: int
    addresses: dict[str, str]


@dataclass(frozen=True)
class Code:
    """The program's files: a gzipped tar with this SHA-256 of what `folder` has; empty if there are none."""

    folder: str = ""
    digest: str = ""
    size: int = 0


@dataclass(frozen=True)
class Put:
    """Have a file with this SHA-256 at `path`, which is relative to the host's folder."""

    path: str
    digest: str
    size: int


@dataclass(frozen=True)
class Piece:
    """A piece of a file that the agent wants; empty if it cannot be read any more."""

    path: str
    data: bytes


@dataclass(frozen=True)
class Fetch:
    """Send the piece of the file at `path`, relative to the host's folder, that begins at `offset`."""

    path: str
    offset: int


@dataclass(frozen=True)
class List:
    """Say which files the host's folder has, checkpoints excepted."""


@dataclass(frozen=True)
class Hello:
    """An agent runs. `folder` stands for the output directory on a host that does not see that."""

    version: int
    pid: int
    folder: str | None = None


@dataclass(frozen=True)
class Reserved:
    """The port that the agent was asked to reserve."""

    port: int


@dataclass(frozen=True)
class Listening:
    """The port at which the agent accepts connections."""

    port: int


@dataclass(frozen=True)
class Probed:
    """Of the hosts of the probe of this number, these could be reached."""

    number: int
    reached: tuple[str, ...]


@dataclass(frozen=True)
class Heartbeat:
    """The agent runs at this time, in seconds by a monotonic clock of its own; sent while it has a lease."""

    sent_at: float


@dataclass(frozen=True)
class LeaseExpired:
    """The launcher has not been heard for so many seconds: all workers are killed, and the agent ends."""

    after: float


@dataclass(frozen=True)
class Warm:
    """A warm server has imported these packages, which took so many seconds."""

    pid: int
    seconds: float
    imports: tuple[str, ...]
    private: int | None = None
    """Bytes of its memory; None if unknown."""
    refused: str | None = None
    """Why workers cannot be forked from it; None if they can."""


@dataclass(frozen=True)
class Started:
    """A worker's process runs."""

    worker: int
    pid: int


@dataclass(frozen=True)
class Usage:
    """What the workers of this host use together.

    Attributes:
        processors: seconds of processor time a second.
        memory: bytes of resident memory; what workers share counts for each of them.
        gpus: percents of the time in which their GPUs compute, on average; None without a driver.
        gpu_memory: bytes that are used of their GPUs.
        gpu_power: watts that their GPUs draw; None where the driver does not say.
    """

    processors: float
    memory: int
    gpus: float | None
    gpu_memory: int | None
    gpu_power: float | None


@dataclass(frozen=True)
class Output:
    """A worker has printed `data` to `stream`, "stdout" or "stderr"."""

    worker: int
    stream: str
    data: bytes


@dataclass(frozen=True)
class Exited:
    """A worker's process has ended, by a signal if the code is negative; all that it printed was sent."""

    worker: int
    exit_code: int
    has_begun: bool = True
    """False if the host lacks something without which it cannot."""


@dataclass(frozen=True)
class Want:
    """The agent wants the piece of a file that begins at `offset`."""

    path: str
    offset: int


@dataclass(frozen=True)
class Stored:
    """A file is there; or `error` says why it cannot be."""

    path: str
    error: str | None = None


@dataclass(frozen=True)
class Fetched:
    """A piece of a file, empty at its end; or `error` says why it cannot be read."""

    path: str
    offset: int
    data: bytes
    error: str | None = None


@dataclass(frozen=True)
class Listed:
    """The files of the host's folder by their relative paths, with their sizes in bytes as text."""

    files: dict[str, str]


@dataclass(frozen=True)
class Swept:
    """So many processes that workers had left behind were killed."""

    count: int


@dataclass(frozen=True)
class Left:
    """The agent's process has ended; sent for it by the process that connects it over a network.

    `last_words` are the last lines that it has written to standard error.
    """

    exit_code: int
    last_words: tuple[str, ...]


FileOrder = Code | Put | Piece | Fetch | List

Order = Setup | Start | Terminate | Kill | Reserve | Listen | Probe | Renew | WindowUpdate | Close | FileOrder
"""Messages to an agent."""

Report = (
    Hello
    | Reserved
    | Listening
    | Probed
    | Heartbeat
    | LeaseExpired
    | Warm
    | Started
    | Usage
    | Output
    | Exited
    | Want
    | Stored
    | Fetched
    | Listed
    | Swept
    | Left
)
"""Messages from an agent."""
