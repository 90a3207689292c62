"""A real `edt serve`, and the requests of WMLA's clients."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from edt_launch.agent.system import processes

POLL = 0.1
EDT = (sys.executable, "-m", "edt_launch.cli")


@dataclass
class Service:
    """`edt serve` on four slots, and the requests of its users."""

    home: Path
    data: Path
    process: "subprocess.Popen[bytes] | None" = None
    passwords: dict[str, str] = field(default_factory=dict)

    def start(self, *users: str, options: Sequence[str] = ()) -> None:
        """Serve, and give every user a password."""
        quick = ["--slots", "4", "--port", "0", "--interval", "0.3", "--coalesce", "0.1", "--protected", "0"]
        words = ("serve", "--home", str(self.home), *quick, *options, "--data-fs", str(self.data))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*EDT, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.until((self.home / "server.json").exists)
        for user in users:
            self.passwords[user] = f"{user}'s password"
            self.edt("users", "add", user)
            self.edt("users", "password", user, "--password-stdin", said=self.passwords[user])

    def edt(self, *words: str, said: str = "") -> None:
        """A command of the administrator."""
        environment = os.environ | {"EDT_HOME": str(self.home)}
        subprocess.run(
            [*EDT, *words], input=said, env=environment, check=True, capture_output=True, text=True
        )

    @property
    def log(self) -> Path:
        return self.home.parent / "serve.log"

    def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            assert self.process is not None
            assert self.process.poll() is None, "the service has ended"
            time.sleep(POLL)

    @property
    def url(self) -> str:
        url: str = json.loads((self.home / "server.json").read_text())["url"]
        return url

    def ask(self, address: str, **options: Any) -> Any:
        """The answer to a GET request, as notebooks send them."""
        answer = requests.get(address, verify=False, timeout=60, **options)
        assert answer.ok, answer.text
        return answer.json()

    def kill(self) -> None:
        """End the service; its jobs go on."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        self.kill()
        for launcher in self.home.glob("jobs/*/run/launcher"):
            processes.kill(processes.tree(json.loads(launcher.read_text())["pid"]))
        for job in self.home.glob("jobs/*"):
            processes.kill(processes.having({"EDT_CHECKPOINT_DIR": str(job / "checkpoint")}))
