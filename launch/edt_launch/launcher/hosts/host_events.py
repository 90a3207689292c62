"""What happens on a job's hosts, as the launcher hears of it."""

from dataclasses import dataclass
from pathlib import Path

from edt_launch.agent import protocol
from edt_messages.messages import Checkpointed

OURS = "edt-launch: "
"""How explanations begin that are not what an agent or ssh has said."""


@dataclass(frozen=True)
class AgentOutput:
    """An agent, or the command that leads to it, has said something about itself."""

    text: str


@dataclass(frozen=True)
class Lost:
    """An agent has ended, or the way to it, by a signal if the exit code is negative.

    `explanation` is what to tell about its workers, line by line. `has_connected`: it had said hello before.
    `gone_after`: seconds from now after which its workers are gone in any case; None if nobody can tell.
    """

    exit_code: int
    explanation: tuple[str, ...] = ()
    has_connected: bool = True
    gone_after: float | None = None

    @property
    def reason(self) -> str:
        """What has come first, in words."""
        ours = (text.removeprefix(OURS) for text in self.explanation if text.startswith(OURS))
        return next(ours, "")


@dataclass(frozen=True)
class CheckpointFetched:
    """A worker's checkpoint is in `path`; that is None if `error` says why not, or if a newer one comes."""

    worker: int
    checkpointed: Checkpointed
    path: Path | None = None
    error: str | None = None


@dataclass(frozen=True)
class CheckpointPut:
    """A worker has the newest checkpoint, if there is one; or `error` says why not."""

    worker: int
    error: str | None = None


@dataclass(frozen=True)
class AllEnded:
    """The last agent has ended, after `Agents.close`; or there was a mistake of ours."""

    error: BaseException | None = None


@dataclass(frozen=True)
class HostEvent:
    """Something has happened on a host, whose name is empty for `AllEnded`."""

    host: str
    happening: protocol.Report | AgentOutput | Lost | CheckpointFetched | CheckpointPut | AllEnded
