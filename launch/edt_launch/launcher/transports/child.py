"""Agents on this machine: children of the launcher."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from edt_launch.core.run_options import RunOptions
from edt_launch.core.system.environments import own
from edt_launch.launcher.transports.command import CommandConnection
from edt_launch.launcher.transports.transport import AGENT, Connection, Transport


class Child(Transport):
    """The agent is a child of this process."""

    name: ClassVar[str] = "child"
    runs_commands: ClassVar[bool] = True
    is_remote: ClassVar[bool] = False

    @classmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self:
        """Always there."""
        return cls()

    def open(  # noqa: D102
        self, host: str, marks: Mapping[str, str], agent: Sequence[str] = AGENT
    ) -> Connection:
        return CommandConnection(agent, {**own(), **marks})

    def describe(self, host: str) -> str:  # noqa: D102
        return "the agent of this host"
