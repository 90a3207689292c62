"""Agents on this machine: children of the launcher."""

from collections.abc import Mapping
from typing import ClassVar, Self

from edt_launch.core.environments import own
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.command import AGENT, CommandConnection
from edt_launch.launcher.transports.transport import Connection, Transport


class Child(Transport):
    """The agent is a child of this process."""

    name: ClassVar[str] = "child"
    is_remote: ClassVar[bool] = False

    @classmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self:
        """Always there."""
        return cls()

    def open(self, host: str, marks: Mapping[str, str]) -> Connection:  # noqa: D102
        return CommandConnection(AGENT, {**own(), **marks})

    def describe(self, host: str) -> str:  # noqa: D102
        return "the agent of this host"
