"""The launcher's end of a driver's socket, with executors that are started in a way of the test's own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class StandIn:
    """Runs a script as a driver.

    Attributes:
        folder: RESULT_DIR of the job, with the log folder of the driver.
        prefix: put before the program of the executors.
        refuse: how the executors end without having been started.
        messages: what the driver has asked for.
    """

    folder: Path
    prefix: Sequence[str] = ()
    refuse: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    printed: str = ""

    def run(self, script: Path, *arguments: str) -> int:
        """Its exit code."""
        ours, theirs = socket.socketpair()
        environment = os.environ | {
            "RESULT_DIR": str(self.folder),
            "LOG_DIR": str(self.folder / "log"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        with ours, theirs:
            driver = subprocess.Popen(
                [sys.executable, "-m", "edt_hvd.wmla.script", str(script), *arguments],
                env=environment | {"EDT_WMLA_LAUNCHER": str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            theirs.close()
            self._serve(ours, lambda program: self._run_executors(program, environment))
            self.printed, _ = driver.communicate()
        return driver.returncode

    def _serve(self, ours: socket.socket, run: Callable[[list[str]], tuple[int, str]]) -> None:
        with ours.makefile(
            "r", encoding="utf-8"
        ) as lines:  # one for both ways would drop lines when it writes
            for line in lines:
                message = json.loads(line)
                self.messages.append(message)
                if message["type"] == "train":
                    exit_code, told = run(message["program"]) if self.refuse is None else (1, self.refuse)
                    answer = {
                        "type": "ended",
                        "number": message["number"],
                        "exit_code": exit_code,
                        "message": told,
                    }
                    ours.sendall(json.dumps(answer).encode() + b"\n")

    def _run_executors(self, program: list[str], environment: dict[str, str]) -> tuple[int, str]:
        (self.folder / "executor").mkdir(exist_ok=True)
        done = subprocess.run(
            [*self.prefix, *program],
            check=False,
            env=environment | {"LOG_DIR": str(self.folder / "executor")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        (self.folder / "executors.log").write_text(done.stdout + done.stderr)
        return done.returncode, done.stderr[-500:]
