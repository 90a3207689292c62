"""Starting an agent on another host, over the system's ssh, and explaining what ssh says."""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

AGENT = (sys.executable, "-P", "-m", "edt_launch.agent")
"""The command that is an agent. What the job has for variables and tokens travels over its channel."""

ALIVE_INTERVAL = 5
"""Seconds after which ssh asks a silent host whether it is there."""

ALIVE_COUNT = 3
"""Questions without an answer after which ssh gives a host up."""

FAILED = 255
"""Exit code of an ssh that could not reach its host, or has lost it."""


@dataclass(frozen=True)
class Remote:
    """How hosts are reached over ssh; None leaves it to ssh's own configuration."""

    port: int | None = None
    identity_file: Path | None = None


def command(host: str, remote: Remote, agent: Sequence[str] = AGENT) -> list[str]:
    """The command that runs an agent on a host, and is connected to its standard streams."""
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "accept-new",
        "ServerAliveInterval": str(ALIVE_INTERVAL),
        "ServerAliveCountMax": str(ALIVE_COUNT),
    }
    words = ["ssh", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    if remote.port is not None:
        words += ["-p", str(remote.port)]
    if remote.identity_file is not None:
        words += ["-i", str(remote.identity_file)]
    return [*words, host, f"exec {shlex.join(agent)}"]


_CHANGED = re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed")
_DENIED = re.compile(r"Permission denied \(")
_MISSING = re.compile(r"not found|No such file or directory|No module named")


def explain(host: str, remote: Remote, said: Sequence[str]) -> str | None:
    """What to do about the last words of an ssh that has failed; None if they say it themselves."""
    text = "\n".join(said)
    if _CHANGED.search(text):
        name = host if remote.port in (None, 22) else f"[{host}]:{remote.port}"
        return (
            f"the key of {host} is not the one that ssh knows; if the host was set up anew, "
            f"run: ssh-keygen -R {shlex.quote(name)}"
        )
    if _DENIED.search(text):
        return f"ssh to {host} must work without a password; to copy your key there, run: ssh-copy-id {host}"
    if _MISSING.search(text):
        return f"{AGENT[0]} with edt_launch is missing on {host}: install the same environment there"
    return None
