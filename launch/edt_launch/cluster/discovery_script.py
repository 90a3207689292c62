"""Hosts from a script that was written for Horovod's ``--host-discovery-script``.

It prints ``host:slots`` or ``host`` a line. It is run again and again in a thread of its own: one that hangs
holds up nobody. What it prints wrongly changes nothing.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from edt_launch.cluster.allocation import HOST, MAX_SLOTS, Allocation, HostSlots
from edt_launch.cluster.follower import Accepted, CheckHost, Limits, Rejected, Source, Unchanged
from edt_launch.cluster.static_hosts import cap
from edt_launch.core.errors import DiscoveryError

INTERVAL = 1.0
"""Seconds from the end of one run to the next, as in Horovod."""

TIME_LIMIT = 30.0
"""Seconds that the script has for its answer."""

MAX_OUTPUT = 2**20
"""Bytes that it may print."""


@dataclass(frozen=True)
class Script:
    """A host-discovery script, and the slots of hosts of which it does not say how many they have."""

    path: Path
    slots_per_host: int | None = None


def parse(text: str, slots_per_host: int | None = None) -> tuple[HostSlots, ...]:
    """The hosts in what a script has printed.

    Raises:
        DiscoveryError: a line makes no sense, or there is none.
    """
    hosts: dict[str, HostSlots] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        host, colon, slots = line.partition(":")
        if not re.fullmatch(HOST, host):
            raise DiscoveryError(line, "'host:slots' or 'host'")
        if not colon and slots_per_host is None:
            raise DiscoveryError(line, "'host:slots', or --slots-per-host")
        if colon and not (re.fullmatch(r"[0-9]{1,7}", slots) and int(slots) <= MAX_SLOTS):
            raise DiscoveryError(line, "a number of slots behind the colon")
        if host in hosts:
            raise DiscoveryError(line, "each host once")
        hosts[host] = HostSlots(host, int(slots) if colon else slots_per_host or 0)
    if not any(host.slots for host in hosts.values()):
        raise DiscoveryError(text.strip(), "at least one host with a slot")
    return tuple(hosts.values())


def run(path: Path, time_limit: float = TIME_LIMIT) -> str:
    """What a script prints.

    Raises:
        DiscoveryError: it cannot be run, fails, or takes or prints too much.
    """
    try:
        process = subprocess.Popen(
            [path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise DiscoveryError(str(path), f"a program that can be run ({error.strerror})") from None
    assert process.stdout is not None
    assert process.stderr is not None
    timer = threading.Timer(time_limit, _kill, (process,))
    timer.start()
    with process.stdout as output, process.stderr as errors:
        complaints: list[bytes] = []
        reader = threading.Thread(target=lambda: complaints.append(_read(errors)), daemon=True)
        reader.start()
        data = _read(output)
        if len(data) > MAX_OUTPUT:
            _kill(process)
        code = process.wait()
        is_late = not timer.is_alive()
        timer.cancel()
        _kill(process)  # what it has left running keeps nothing open
        reader.join()
    if is_late:
        raise DiscoveryError("", f"an answer within {time_limit:g} s")
    if len(data) > MAX_OUTPUT:
        raise DiscoveryError(data[:80].decode(errors="replace"), f"{MAX_OUTPUT} bytes at most")
    if code != 0:
        raise DiscoveryError(complaints[0].decode(errors="replace").strip(), f"exit code 0, not {code}")
    return data.decode(errors="replace")


def _read(stream: IO[bytes]) -> bytes:
    """What a pipe has until its end, or more than there may be."""
    found = b""
    while len(found) <= MAX_OUTPUT and (data := os.read(stream.fileno(), 2**16)):
        found += data
    return found


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a script with everything that it has started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class ScriptFollower(Source):
    """Runs a script again and again, and reports each distinct mistake of it once.

    Args:
        script: the script.
        limits: bounds on the number of slots; more than there may be are left out.
        check_host: asked for each host.
        run: runs it once.
        interval: seconds from the end of one run to the next.
    """

    def __init__(
        self,
        script: Script,
        limits: Limits,
        check_host: CheckHost,
        run: Callable[[Path], str] = run,
        interval: float = INTERVAL,
    ) -> None:
        super().__init__()
        self._script = script
        self._limits = limits
        self._check_host = check_host
        self._run = run
        self._interval = interval
        self._news: tuple[HostSlots, ...] | str | None = None
        """Hosts, or what is wrong; None once that is known."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="edt-discovery", daemon=True)
        self._thread.start()

    def poll(self, now: float) -> Accepted | Rejected | None:
        """What has not been told yet, or None; the time does not matter."""
        with self._lock:
            news, self._news = self._news, None
        if news is None:
            return None
        if isinstance(news, str):
            return self._judge(Rejected(f"the host-discovery script {self._script.path} {news}"))
        hosts = cap(news, self._limits.max_np)
        if self.allocation is not None and set(hosts) == set(self.allocation.hosts):
            return self._judge(Unchanged())
        slots = sum(host.slots for host in hosts)
        if slots < self._limits.min_np:
            return self._judge(
                Rejected(
                    f"the host-discovery script {self._script.path} shows {slots} slots, fewer than "
                    f"--min-np {self._limits.min_np}"
                )
            )
        problem = next(filter(None, (self._check_host(host.host) for host in hosts)), None)
        if problem is not None:
            return self._judge(Rejected(problem))
        generation = 1 if self.allocation is None else self.allocation.generation + 1
        return self._judge(Accepted(Allocation(generation, hosts), changed=time.time()))

    def close(self) -> None:
        """Run it no more. One that is running is left to its time limit."""
        self._stopped.set()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            news: tuple[HostSlots, ...] | str
            try:
                news = parse(self._run(self._script.path), self._script.slots_per_host)
            except DiscoveryError as error:
                news = str(error)
            with self._lock:
                self._news = news
            self._stopped.wait(self._interval)
