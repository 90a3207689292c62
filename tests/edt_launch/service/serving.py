"""Starts `edt serve` with a loop that does nothing, in a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = """
import sys
from types import SimpleNamespace
from edt_launch.service.app import running
running.loop = SimpleNamespace(run=lambda settings, store, bus, stop, **_: stop.wait())
from edt_launch.cli.main import main
sys.argv = ["edt", "serve", *sys.argv[1:]]
main()
"""

PATIENCE = 60.0
"""Seconds until a test gives up."""


@dataclass
class Service:
    """A service that runs."""

    home: Path
    process: subprocess.Popen[bytes]

    def __post_init__(self) -> None:
        server = self.home / "server.json"
        until(lambda: self.process.poll() is not None or (server.is_file() and self._is_ours(server)))
        assert self.process.poll() is None, (self.home / "output").read_text()
        self.url = json.loads(server.read_text())["url"]
        self.token = (self.home / "token").read_text().strip()

    def _is_ours(self, server: Path) -> bool:
        found: bool = json.loads(server.read_text())["pid"] == self.process.pid
        return found

    def request(self, path: str) -> urllib.request.Request:
        return urllib.request.Request(f"{self.url}{path}", headers={"Authorization": f"Bearer {self.token}"})

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.request(path), timeout=PATIENCE) as answer:
            return json.load(answer)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextlib.contextmanager
def serving(home: Path, *arguments: str) -> Iterator[Service]:
    process = start(home, *arguments)
    try:
        yield Service(home, process)
    except BaseException:
        print(f"exit code {process.poll()}, output:", (home / "output").read_text(errors="replace")[-5000:])
        raise
    finally:
        process.kill()
        process.wait()


def start(home: Path, *arguments: str, files: int | None = None) -> "subprocess.Popen[bytes]":
    """Start one; `files`: descriptors that it may have."""
    home.mkdir(exist_ok=True)
    limited = [] if files is None else ["prlimit", f"--nofile={files}:{files}"]
    command = [*limited, sys.executable, "-c", PROGRAM, "--home", str(home), "--port", "0", *arguments]
    with (home / "output").open("wb") as output:
        return subprocess.Popen(
            command,
            env=os.environ | {"EDT_HOME": "/nowhere"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def until(is_so: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)
