"""The system's ssh."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self

from typer import Option

from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.command import CommandTransport
from edt_launch.launcher.transports.transport import AGENT

CONNECT_TIMEOUT = 10
"""Seconds that a host has to answer at all; the slot is tried again later."""

ALIVE_INTERVAL = 5
"""Seconds after which ssh asks a silent host whether it is there."""

ALIVE_COUNT = 3
"""Questions without an answer after which ssh gives a host up."""

_HINTS = {
    r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed": (
        "the key of {host} is not the one that ssh knows; if the host was set up anew, "
        "run: ssh-keygen -R {name}"
    ),
    r"Permission denied \(": (
        "ssh to {host} must work without a password; to copy your key there, run: ssh-copy-id {host}"
    ),
    r"No module named '?(?!edt_launch)(?P<package>\w+)": (
        "the Python of EDT on {host} lacks the package {package}: install the same version of EDT there, "
        "with all that it needs"
    ),
    r"not found|No such file or directory|No module named": (
        "{python} with edt_launch is missing on {host}, and there is no edt in PATH: install the same "
        "version there, at the same path or with a link to its edt in /usr/local/bin, or name its edt with "
        "agent=PATH in the host's line"
    ),
}
"""What to do about an ssh that has failed, by what it says."""


@dataclass(frozen=True)
class SshOptions:
    """The options of `Ssh`."""

    ssh_port: Annotated[int | None, Option(min=1, max=65535, help="ssh port of the hosts.")] = None
    ssh_identity_file: Annotated[Path | None, Option(help="Private key for ssh.")] = None


@dataclass(frozen=True)
class Ssh(CommandTransport):
    """Agents are started over ssh; None leaves it to ssh's own configuration."""

    name: ClassVar[str] = "ssh"
    options: ClassVar[type] = SshOptions
    port: int | None = None
    identity_file: Path | None = None

    @classmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self:
        """Always there."""
        given = options.of(SshOptions)
        return cls(given.ssh_port, given.ssh_identity_file)

    @property
    def arguments(self) -> list[str]:
        """Those of every ssh that the options ask for."""
        port = ["-p", str(self.port)] if self.port is not None else []
        return port + (["-i", str(self.identity_file)] if self.identity_file is not None else [])

    def command(self, host: str, agent: Sequence[str] = AGENT) -> list[str]:
        """The command that runs an agent on a host, and is connected to its standard streams.

        A host without this interpreter runs the `edt` that is in its PATH, unless another agent is named.
        """
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "accept-new",
            "ConnectTimeout": str(CONNECT_TIMEOUT),
            "ServerAliveInterval": str(ALIVE_INTERVAL),
            "ServerAliveCountMax": str(ALIVE_COUNT),
        }
        words = ["ssh", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
        words += self.arguments
        here = f"exec {shlex.join(agent)}"
        if agent[-1] == AGENT[-1]:
            here = f"[ -x {shlex.quote(agent[0])} ] && {here}; exec edt agent"
        return [*words, host, f"exec sh -c {shlex.quote(here)}"]

    def explain(self, host: str, last_lines: Sequence[str]) -> str | None:
        """What to do about the last words of an ssh that has failed; None if they say it themselves."""
        name = shlex.quote(host if self.port in (None, 22) else f"[{host}]:{self.port}")
        for sign, hint in _HINTS.items():
            if (found := re.search(sign, "\n".join(last_lines))) is not None:
                return hint.format(host=host, name=name, python=AGENT[0], **found.groupdict())
        return None
