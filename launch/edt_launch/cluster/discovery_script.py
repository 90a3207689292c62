"""Hosts from a script that was written for Horovod's ``--host-discovery-script``.

It prints ``host:slots`` or ``host`` a line.
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, ClassVar, Self

from typer import Option

from edt_launch.cluster.allocation import HOST, MAX_SLOTS, HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource, leave_out
from edt_launch.core.errors import DiscoveryError, UsageError
from edt_launch.core.files.text_files import decoded
from edt_launch.core.scripts import command_problem

TIME_LIMIT = 30.0
"""Seconds that the script has for its answer."""

END_TIMEOUT = 5.0
"""Seconds that a script has to be gone once it is killed."""

MAX_OUTPUT = 2**20
"""Bytes that it may print."""


@dataclass(frozen=True)
class ScriptOptions:
    """The options of `Script`."""

    host_discovery_script: Annotated[
        Path | None,
        Option(help="Run on the hosts that this script prints, one a line: 'host:slots' or 'host'."),
    ] = None
    slots_per_host: Annotated[
        int | None,
        Option(min=1, help="Slots of each host that the script prints without a number, or of --under-mpi."),
    ] = None


@dataclass(frozen=True)
class Script(HostSource):
    """A host-discovery script, and the slots of hosts of which it does not say how many they have."""

    name: ClassVar[str] = "host-discovery script"
    options: ClassVar[type] = ScriptOptions
    may_change: ClassVar[bool] = True
    may_grow: ClassVar[bool] = True
    path: Path
    slots_per_host: int | None = None

    def __str__(self) -> str:
        return f"the host-discovery script {self.path}"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:  # noqa: D102
        given = options.of(ScriptOptions)
        path, slots = given.host_discovery_script, given.slots_per_host
        if path is None:
            if slots is not None:
                raise UsageError("--slots-per-host is for --host-discovery-script: give that, too")
            return None
        script = path.absolute()
        if (problem := command_problem(str(script), script.parent)) is not None:
            raise UsageError(f"--host-discovery-script: {problem.text}; {problem.advice}")
        return cls(script, slots)

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        return self.parse(run(self.path))

    def parse(self, text: str) -> tuple[HostSlots, ...]:
        """The hosts in what it has printed.

        Raises:
            DiscoveryError: a line makes no sense, or there is none. Lines with odd names of hosts are left
                out, unless there are no others.
        """
        hosts: dict[str, HostSlots] = {}
        lines = list(dict.fromkeys(filter(None, map(str.strip, text.splitlines()))))
        good = [line for line in lines if re.fullmatch(HOST, line.partition(":")[0])]
        for line in lines if good else ():
            if line not in good:
                leave_out(str(self), line)
        for line in good or lines:
            host = self._host(line)
            if host.host in hosts:
                raise DiscoveryError(self.path, line, "each host once")
            hosts[host.host] = host
        if not any(host.slots for host in hosts.values()):
            raise DiscoveryError(self.path, text.strip(), "at least one host with a slot")
        return tuple(hosts.values())

    def _host(self, line: str) -> HostSlots:
        host, colon, slots = line.partition(":")
        if not re.fullmatch(HOST, host):
            raise DiscoveryError(self.path, line, "'host:slots' or 'host'")
        if not colon and self.slots_per_host is None:
            raise DiscoveryError(self.path, line, "'host:slots', or --slots-per-host")
        if colon and not (re.fullmatch(r"[0-9]{1,7}", slots) and int(slots) <= MAX_SLOTS):
            raise DiscoveryError(self.path, line, "a number of slots behind the colon")
        return HostSlots(host, int(slots) if colon else self.slots_per_host or 0)


def run(path: Path, time_limit: float = TIME_LIMIT) -> str:
    """What a script prints.

    What it has started in its session is killed; nobody waits for what it has started elsewhere.

    Raises:
        DiscoveryError: it cannot be run, fails, or takes or prints too much.
    """
    deadline = time.monotonic() + time_limit
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen([path], stdin=none, stdout=pipe, stderr=pipe, start_new_session=True)
    except OSError as error:
        raise DiscoveryError(path, "", f"a program that can be run ({error.strerror})") from None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as stdout, process.stderr as stderr:
        try:
            output, errors = _read(stdout, stderr, deadline)
            if len(output) > MAX_OUTPUT:
                _kill(process)
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise DiscoveryError(path, "", f"an answer within {time_limit:g} s") from None
        finally:
            _kill(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_TIMEOUT)
    if len(output) > MAX_OUTPUT:
        raise DiscoveryError(path, output[:80].decode(errors="replace"), f"{MAX_OUTPUT} bytes at most")
    if code != 0:
        raise DiscoveryError(path, errors.decode(errors="replace").strip(), f"exit code 0, not {code}")
    return decoded(output, "replace")


def _read(stdout: IO[bytes], stderr: IO[bytes], deadline: float) -> tuple[bytes, bytes]:
    """What both pipes have until the end of the first, or more of that than there may be.

    Raises:
        TimeoutError: the end does not come in time.
    """
    found = {stdout: b"", stderr: b""}
    with selectors.DefaultSelector() as selector:
        for pipe in found:
            selector.register(pipe, selectors.EVENT_READ)
        while stdout in selector.get_map() and len(found[stdout]) <= MAX_OUTPUT:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, 2**16)
                if not data:
                    selector.unregister(key.fileobj)
                for stream in found:
                    if stream is key.fileobj:
                        found[stream] = (found[stream] + data)[: MAX_OUTPUT + 1]
    return found[stdout], found[stderr]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a script with everything that it has started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
