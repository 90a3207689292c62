"""Steps of ``make setup`` and ``make wheels``: commands with their output in a log, and a line for each step.

Standard library only: it runs before anything is installed.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_started: list["subprocess.Popen[bytes]"] = []


class SetUpError(Exception):
    """Set-up cannot go on. The message says what is missing and how to get it."""


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print what is being done, and how long it took."""
    begin = time.monotonic()
    print(f"{title} ...", end="", flush=True)
    yield
    print(f" {time.monotonic() - begin:.0f} s")


def start(log: Path, *command: str | Path) -> Callable[[], None]:
    """Start a command that appends its output to a log, and return a function that waits for its end.

    Raises:
        SetUpError: The command could not be started, or failed; the message holds the end of its output.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        begin = output.tell()
        try:
            process = subprocess.Popen(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SetUpError(f"cannot run {command[0]}: {error.strerror}") from error
    _started.append(process)

    def wait() -> None:
        if code := process.wait():
            lines = log.read_bytes()[begin:].decode(errors="replace").splitlines()
            quoted = "\n  | ".join(excerpt(lines))
            raise SetUpError(f"{command[0]}\n  | {quoted}\nexit code {code}; the whole log: {log}")

    return wait


def run(log: Path, *command: str | Path) -> None:
    """Start a command and wait for its end."""
    start(log, *command)()


def excerpt(lines: list[str]) -> list[str]:
    """Return the first eight lines about errors, which builds bury, and the last fifteen lines."""
    told = [line for line in lines[:-15] if re.search(r"\berror\b.*[:!(]", line, re.IGNORECASE)][:8]
    return [*told, "...", *lines[-15:]] if lines[:-15] else lines


def run_steps(name: str, steps: Callable[[], None]) -> int:
    """Run all steps, report a failure in words, and return the exit code. No command is left running."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        steps()
    except SetUpError as error:
        print(f"\n{name} failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{name} interrupted; downloads and built wheels are kept for the next time", file=sys.stderr)
        return 130
    finally:
        for process in _started:
            if process.poll() is None:
                _kill_session(process.pid)
    return 0


def _kill_session(session: int) -> None:
    """Kill all processes of a session; ninja puts each of its commands into a process group of its own."""
    while members := [pid for pid, number, state in _processes() if number == session and state not in "ZX"]:
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _processes() -> Iterator[tuple[int, int, str]]:
    """Yield the number, the session and the state of every process."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
            yield int(stat.parent.name), int(session), state
