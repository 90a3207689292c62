"""What ``edt doctor`` asks the machine that it runs on."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.local import Cores

PROBE_TIMEOUT = 120.0
"""Seconds within which a child must have imported something."""
TIMED_OUT = 124
"""The exit code of a command that has not ended by then, as that of timeout(1)."""
SERVICE_TIMEOUT = 5.0
"""Seconds within which the job service must answer."""


@dataclass(frozen=True)
class CommandOutput:
    """How a command ended: its exit code (negative: the signal) and what it wrote."""

    code: int
    stdout: str
    stderr: str = ""

    @property
    def reason(self) -> str:
        """Its last words, for a message."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        if self.code < 0:
            return f"ended by signal {-self.code}"
        return lines[-1].strip() if lines else f"exit code {self.code}"


class Machine:
    """What the checks ask the machine that this process runs on."""

    version = sys.version_info[:3]
    executable = sys.executable
    environment: Mapping[str, str] = os.environ

    def which(self, command: str) -> str | None:
        """The path of a command: the environment's own before those on PATH; None if there is none."""
        beside = os.path.join(os.path.dirname(sys.executable), command)
        return beside if os.access(beside, os.X_OK) else shutil.which(command)

    def run(self, *command: str) -> CommandOutput:
        """Run a command in the C locale. Exit code 127: it cannot be started; 124: it is too slow."""
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=PROBE_TIMEOUT,
                check=False,
                env={**self.environment, "LC_ALL": "C"},
            )
        except OSError as error:
            return CommandOutput(127, "", f"{command[0]}: {error.strerror}")
        except subprocess.TimeoutExpired:
            return CommandOutput(TIMED_OUT, "", f"no answer within {PROBE_TIMEOUT:.0f} s")
        return CommandOutput(done.returncode, done.stdout, done.stderr)

    def cores(self) -> int:
        """How many processor cores this process may use."""
        return Cores.detect(HostOptions()).count

    def interfaces(self) -> Mapping[str, str]:
        """The IPv4 address of each network interface that is up."""
        up = {name for name, state in psutil.net_if_stats().items() if state.isup}
        return {
            name: address.address
            for name, addresses in psutil.net_if_addrs().items()
            for address in addresses
            if name in up and address.family is socket.AF_INET
        }

    def service(self) -> str | None:
        """What the job service says of itself, None if none is named; raises a ClientError."""
        from edt_launch.cli.client.configuration import find
        from edt_launch.cli.client.service import Service
        from edt_launch.cli.client.transport import Http

        configuration = find(self.environment)
        if configuration is None:
            return None
        about = Service(Http(configuration, SERVICE_TIMEOUT)).about()
        return f"{about.get('version')} at {configuration.url}, where you are {about.get('user')}"
