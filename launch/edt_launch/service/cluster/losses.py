"""Which hosts are lost: a job says so, and the service does not reach them either.

A job's word alone is not enough, as it may be wrong or lack a key. A lost host is looked at until it answers.
"""

import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

INTERVAL = 5.0
"""Seconds from one look at a host to the next."""

CONNECT_TIMEOUT = 3
"""Seconds that a host has to answer."""

_UNREACHED = 255
"""ssh's exit code where there is no connection; also where the host lets nobody in."""

_ANSWERS = ("Permission denied", "Host key verification failed", "IDENTIFICATION HAS CHANGED")
"""What ssh says of a host that does answer."""


class Check(Protocol):
    """A look at a host."""

    def problem(self) -> str | None:
        """Why it cannot be reached, empty if it can; None while that is not known."""


class SshCheck:
    """Connects to a host as launchers do, by ssh with these arguments besides."""

    def __init__(self, host: str, arguments: Sequence[str] = ()) -> None:
        options = ("BatchMode=yes", "StrictHostKeyChecking=accept-new", f"ConnectTimeout={CONNECT_TIMEOUT}")
        words = ["ssh", *(word for option in options for word in ("-o", option)), *arguments, host, "true"]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def problem(self) -> str | None:
        """Why it cannot be reached, empty if it can; None while that is not known."""
        if self._process.poll() is None:
            return None
        assert self._process.stderr is not None
        with self._process.stderr as said:
            lines = said.read().strip().splitlines()
        text = lines[-1] if lines else "ssh does not reach it"
        answers = self._process.returncode != _UNREACHED or any(sign in text for sign in _ANSWERS)
        return "" if answers else text


@dataclass
class _Watched:
    checked_at: float = float("-inf")
    check: Check | None = None
    lost: str = ""


@dataclass
class Losses:
    """Hosts that are watched, because a job has reported them or because they are lost."""

    start: Callable[[str], Check] = SshCheck
    _watched: dict[str, _Watched] = field(default_factory=dict)

    def look(self, now: float, listed: Collection[str], reports: Mapping[str, str]) -> Mapping[str, str]:
        """The lost ones of the hosts that are listed, and why; does not wait.

        Args:
            now: seconds, only forwards.
            listed: hosts of the source.
            reports: hosts that jobs cannot reach, and why.
        """
        for host in reports.keys() & set(listed) - self._watched.keys():
            self._watched[host] = _Watched()
        for host, watched in list(self._watched.items()):
            self._look_at(now, host, watched, reports.get(host, ""))
            is_wanted = host in listed and (watched.lost or host in reports)
            if watched.check is None and not is_wanted:
                del self._watched[host]
        return {host: watched.lost for host, watched in self._watched.items() if watched.lost}

    def _look_at(self, now: float, host: str, watched: _Watched, report: str) -> None:
        if watched.check is None and now - watched.checked_at >= INTERVAL:
            watched.check, watched.checked_at = self.start(host), now
        if watched.check is None or (problem := watched.check.problem()) is None:
            return
        watched.check = None
        if not problem:
            watched.lost = ""
        elif not watched.lost:  # what is known first is told until it is back
            watched.lost = f"it cannot be reached: {report or problem}"
