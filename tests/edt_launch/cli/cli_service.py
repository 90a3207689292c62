"""The service that commands ask: its application, with a job that trains, and one that waits."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from databases import sqlite_at
from edt_launch.cli.client.configuration import Configuration
from edt_launch.cli.client.service import Service
from edt_launch.cli.client.transport import Http
from edt_launch.service.bus import Topic
from edt_launch.service.experiments.searches.plan import Next
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State
from world import NOW, World, tar

TRAIN, EVAL = "jaaaaaaaa", "jbbbbbbbb"
SEARCH = {
    "name": "find-rate", "metric": "loss", "parameters": {"rate": {"values": [0.1, 0.2]}},
    "job": {"command": ["python", "train.py"]},
}  # fmt: skip


class CliService(World):
    """A service that the environment names.

    Attributes:
        at_request: is called before each request is served.
        asked: methods and targets of the requests.
        broken: so many of the next answers to a POST break off.
    """

    def __init__(self, folder: Path, url: str, environment: pytest.MonkeyPatch) -> None:
        super().__init__(folder / "home", sqlite_at(folder / "edt.db"))
        self.url = url
        self.at_request: Callable[[], object] = int
        self.asked: list[tuple[str, str]] = []
        self.broken = 0
        self._environment = environment
        environment.setenv("EDT_URL", url)
        self.log_on("admin")
        self.add(
            TRAIN, state=State.RUNNING, reason="its fair share is 2 of 4", size=2, target=2, share=2.0,
            held=(("node1", ("0", "1")),), started=NOW - 190, step=430, total_steps=1000, loss=0.4123,
            throughput=13.2, resizes=3, can_save=True,
        )  # fmt: skip
        self.add(EVAL, "bob", name="eval", min=3, reason="waits for 3 devices at once: 2 are free")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append((scope["method"], f"{scope['path']}?{scope['query_string'].decode()}"))
        self.at_request()
        self.bus.notify(*Topic)  # the test may have changed anything
        is_broken = scope["method"] == "POST" and self.broken > 0
        self.broken -= is_broken

        async def send_some(message: Message) -> None:
            if not is_broken or message["type"] == "http.response.start":
                await send(message)

        await self.app(scope, receive, send_some)

    def log_on(self, name: str) -> None:
        """Have commands ask as the user of that name, or whoever has that token."""
        self._environment.setenv("EDT_TOKEN", self.tokens.get(name, name))

    def add(self, job: str, owner: str = "admin", **fields: Any) -> None:
        """Add a job of a name, with other fields as given."""
        for folder in self.files(job).folders:
            folder.mkdir(parents=True)
        given = {"name": "train", "min": 1, "max": 4, "submitted": NOW - 100, **fields}
        self.store.jobs.add(JobRecord(job, owner, ("python", "train.py"), **given))

    def add_search(self) -> str:
        """Add a search, two of whose trials have ended; its id."""
        code = {"code": ("code.tar", tar({"train.py": b""}))}
        answer = self.admin.post("/searches", data={"spec": json.dumps(SEARCH)}, files=code)
        assert answer.status_code == 201, answer.text
        (search,) = self.store.experiments.searches()
        for number, metric in enumerate((0.5, 0.25)):
            rate = {"rate": 0.1 * (1 + number)}
            trial = Next(number, rate, {"rate": "0.1"}, 0, "").run(search, f"raaaaaaa{number}", NOW)
            self.store.experiments.add_trial(replace(trial, metric=metric))
        return search.id

    def submitted(self) -> list[JobRecord]:
        """The jobs that commands have submitted."""
        return [job for job in self.store.jobs.page().jobs if job.id not in (TRAIN, EVAL)]

    def print(self, *lines: str) -> None:
        """Have the job that trains print that."""
        self.files(TRAIN).launcher_log.write_text("".join(f"{line}\n" for line in lines))

    def client_side(self) -> Service:
        """What commands ask it by."""
        return client_of(self.url, self.tokens["admin"])


def client_of(url: str, token: str = "", **limits: float) -> Service:
    return Service(Http(Configuration(url, token, "the test"), **limits))
