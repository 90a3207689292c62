"""The interface of a way to start agents on other hosts."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from edt_launch.core.run_options import RunOptions

AGENT = (sys.executable, "-P", "-m", "edt_launch.agent")
"""The command that is an agent. The job's variables and tokens travel over its standard streams."""

HOST_LOST = 255
"""Exit code of workers whose host cannot be reached any more: ssh's own."""


class Connector(ABC):
    """A way to start the agent of another host. `name` is what messages call it."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self | None:
        """The connector, if it is to be used with these options and in this environment; else None."""

    @abstractmethod
    def command(self, host: str, agent: Sequence[str] = AGENT) -> list[str]:
        """The command that runs `agent` on a host, connected to the command's own standard streams.

        It ends when the agent ends, and ends the agent, or its input, when it is killed.
        """

    def explain(self, host: str, last_lines: Sequence[str]) -> str | None:
        """What to do about a command that has failed; None if its last lines say it themselves."""
        return None
