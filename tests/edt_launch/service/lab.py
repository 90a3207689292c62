"""Ann's project in a service for tests: bob is to be a member, a training definition, an experiment."""

import json
from typing import Any

from starlette.testclient import TestClient

from edt_launch.service.jobs.states import State
from world import World, tar

CODE = tar({"train.py": b"print()"})
COMMAND = ["python", "train.py"]


class Lab:
    """`world` with a project `digits` of ann's."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ann, self.bob, self.admin = world.ann, world.bob, world.admin
        self.project = made(self.ann.post("/projects", json={"name": "digits"}))["id"]

    def join(self, name: str, role: str) -> None:
        answer = self.ann.put(f"/projects/{self.project}/members/{name}", json={"role": role})
        assert answer.status_code == 200, answer.text

    def post_definition(
        self, client: TestClient | None = None, code: bytes | None = CODE, **spec: Any
    ) -> Any:
        files = None if code is None else {"code": ("code.tar.gz", code)}
        content = {"project": self.project, "name": "net", "command": COMMAND, **spec}
        return (client or self.ann).post("/definitions", data={"spec": json.dumps(content)}, files=files)

    def definition(self, **spec: Any) -> Any:
        return made(self.post_definition(**spec))

    def post_experiment(self, client: TestClient | None = None, **spec: Any) -> Any:
        content = {"project": self.project, "name": "first", **spec}
        return (client or self.ann).post("/experiments", json=content)

    def experiment(self, *definitions: str, **spec: Any) -> Any:
        trainings = [{"definition": one, "min": 1, "max": 4} for one in definitions]
        return made(self.post_experiment(**{"trainings": trainings, **spec}))

    def run(self, experiment: str, client: TestClient | None = None, **wanted: Any) -> Any:
        return made((client or self.ann).post(f"/experiments/{experiment}/runs", json=wanted))["runs"]

    def finish(self, job: str, **values: float) -> None:
        """A job has reported that, and ended."""
        self.world.files(job).output.events.write_text(event(**values))
        self.world.go(job, State.STARTING, State.RUNNING, State.SUCCEEDED)


def event(**values: float) -> str:
    """A line of what a job reports."""
    told = {"event": "progress", "time": 1.0, "step": 1, "epoch": 0, "size": 1, "values": values}
    return json.dumps(told) + "\n"


def made(answer: Any) -> Any:
    assert answer.status_code == 201, answer.text
    return answer.json()


def refused(answer: Any, status: int, *said: str) -> None:
    assert answer.status_code == status, answer.text
    for text in said:
        assert text in answer.text
