"""A service without threads, whose searches and jobs the test moves on."""

import json
from typing import Any

from starlette.testclient import TestClient

from edt_launch.adapters.wmla.hypersearch.searches import METRIC_FILE, ExecTrials
from edt_launch.adapters.wmla.rest.authenticator import DEEP_LEARNING
from edt_launch.service.experiments.searches.controller import Controller
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State
from searches import content
from world import World, tar

CODE = tar({"model/main.py": b"print('hello')\n", "model/config.json": b"{}"})


class Laboratory:
    """What tests do with searches.

    Args:
        world: the service.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.ann, self.bob, self.admin = (self.client(name) for name in ("ann", "bob", "admin"))
        self.start_service()

    def client(self, name: str) -> TestClient:
        client = TestClient(self.world.app, base_url=f"http://edt.test{DEEP_LEARNING}/")
        client.auth = (name, self.world.tokens[name])
        return client

    def start_service(self) -> None:
        """The service starts; if it ran before, that one was killed."""
        self.controller = Controller(self.world.context, {"wmla": ExecTrials(self.world.context)})

    def post(self, client: TestClient, given: Any = None, code: bytes = CODE, **algo: Any) -> Any:
        data = {"data": json.dumps(content(**algo) if given is None else given)}
        return client.post("hypersearch", data=data, files={"file": ("model.modelDir.tar", code)})

    def start(self, code: bytes = CODE, **algo: Any) -> str:
        answer = self.post(self.ann, code=code, **algo)
        assert answer.status_code == 200, answer.text
        name: str = answer.json()
        self.look()
        return name

    def look(self) -> float | None:
        """Looks until there is nothing more to do at present; when to look again."""
        now = self.world.clock.now
        while (again_at := self.controller.look(now)) == now:
            pass
        return again_at

    def show(self, name: str) -> Any:
        answer = self.ann.get(f"hypersearch/{name}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def jobs(self) -> list[JobRecord]:
        """The trials' jobs that live, oldest first."""
        return self.world.store.jobs.live()

    def work_dir(self, job: JobRecord) -> Any:
        return self.world.files(job.id).code / job.directory

    def finish(self, job: JobRecord, *losses: float) -> None:
        """A trial's program has done its work, and said how well."""
        entries = [{"steps": step, "loss": loss} for step, loss in enumerate(losses, 1)]
        (self.world.files(job.id).root / METRIC_FILE).write_text(json.dumps(entries))
        self.world.go(job.id, State.STARTING, State.RUNNING, State.SUCCEEDED)

    def play(self, name: str) -> Any:
        """All trials run, until the search ends; the loss is the rate."""
        for _ in range(100):
            shown = self.show(name)
            if shown["state"] not in ("SUBMITTED", "RUNNING"):
                return shown
            for job in self.jobs():
                config = json.loads((self.work_dir(job) / "config.json").read_text())
                self.finish(job, 1.0, config["rate"])
            self.world.clock.now += 1
            self.look()
        raise AssertionError("it does not end")
