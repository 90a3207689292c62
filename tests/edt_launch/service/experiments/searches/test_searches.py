"""Searches over the service's REST, whose controller and jobs the test moves on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from edt_launch.service.experiments.searches.controller import Controller
from edt_launch.service.experiments.searches.trials import JobTrials
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted
from world import World, tar

PAGE = Path(__file__).parents[5] / "docs" / "how-to" / "searches.md"
SPEC: dict[str, Any] = json.loads(re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)[0])
LONG = {"units": {"values": ["", "x" * 4000]}}
WIDE = {f"p{n}": "x" * 4000 for n in range(17)}
CODE = tar({"train.py": b"print()"})


class Running:
    """A service and its controller of searches."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.restart()

    def restart(self) -> None:
        """The service starts; if it ran before, that one was killed."""
        self.controller = Controller(self.world.context)

    def post(self, client: Any = None, code: bytes | None = CODE, **changes: Any) -> Any:
        files = None if code is None else {"code": ("code.tar.gz", code)}
        spec = {"spec": json.dumps(SPEC | changes)}
        return (client or self.world.ann).post("/searches", data=spec, files=files)

    def create(self, **changes: Any) -> Any:
        answer = self.post(**changes)
        assert answer.status_code == 201, answer.text
        self.look()
        return self.show(answer.json()["id"])

    def look(self) -> None:
        while self.controller.look(self.world.clock.now) == self.world.clock.now:
            pass

    def show(self, name: str) -> Any:
        answer = self.world.ann.get(f"/searches/{name}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def finish(self, job: JobRecord, **values: object) -> None:
        """A trial's script has reported that, and ended."""
        event = {"event": "progress", "time": 1.0, "step": 1, "epoch": 0, "size": 1, "values": values}
        self.world.files(job.id).output.events.write_text(json.dumps(event) + "\n")
        self.world.go(job.id, State.STARTING, State.RUNNING, State.SUCCEEDED)

    def play(self, name: str) -> Any:
        """All trials run; each one's accuracy is its rate."""
        for _ in range(50):
            shown = self.show(name)
            if shown["state"] not in ("queued", "running"):
                return shown
            for job in self.world.store.jobs.live():
                rate = json.loads(job.environment["EDT_PARAMETERS"])["rate"]
                self.finish(job, accuracy=rate)
            self.look()
        raise AssertionError("it does not end")


@pytest.fixture
def running(world: World) -> Running:
    return Running(world)


def test_the_example_finds_the_best_rate(running: Running) -> None:
    shown = running.create()
    assert (shown["state"], shown["total"], shown["counts"]["queued"]) == ("running", 4, 2)
    first, second = running.world.store.jobs.live()
    parameters = json.loads(first.environment["EDT_PARAMETERS"])
    assert parameters == shown["trials"][0]["parameters"]
    assert first.command == ("python", "train.py", "--rate", str(parameters["rate"]))
    assert (first.owner, first.name, first.min, first.max) == ("ann", "find-rate-0", 1, 2)
    assert [job.environment["EDT_TRIAL"] for job in (first, second)] == ["0", "1"]
    assert first.environment["EDT_SEARCH"] == "find-rate"
    assert (running.world.files(first.id).code / "train.py").read_text() == "print()"

    shown = running.play("find-rate")
    assert (shown["state"], shown["counts"]) == ("succeeded", {"succeeded": 4})
    assert shown["best"]["metric"] == max(trial["metric"] for trial in shown["trials"])
    assert shown["best"]["metric"] == shown["best"]["parameters"]["rate"]
    assert {trial["parameters"]["units"] for trial in shown["trials"]} <= {16, 32, 64}
    (listed,) = running.world.ann.get("/searches").json()["searches"]
    assert listed["best"] == shown["best"]


def test_others_see_that_it_is_there_and_change_nothing(running: Running) -> None:
    bob, name = running.world.bob, running.create()["id"]
    shown = bob.get(f"/searches/{name}").json()
    assert (shown["owner"], shown["counts"]) == ("ann", {"queued": 2})
    assert {shown[private] for private in ("reason", "best", "trials", "spec", "job")} == {None}
    assert bob.post(f"/searches/{name}/stop").status_code == 403
    assert bob.delete(f"/searches/{name}").status_code == 403
    assert running.world.admin.post(f"/searches/{name}/stop").status_code == 200


def test_others_do_not_see_what_a_failed_job_has_printed(running: Running) -> None:
    world, name = running.world, running.create(max_trials=1)["id"]
    (job,) = world.store.jobs.live()
    world.go(job.id, State.STARTING, State.RUNNING)
    world.store.jobs.move(job.id, State.FAILED, "failed", world.clock.now, failure="password: secret")
    running.look()
    for reader, seen in ((world.ann, True), (world.admin, True), (world.bob, False)):
        assert ("secret" in reader.get(f"/searches/{name}").text) is seen
        assert ("secret" in reader.get("/searches").text) is seen


def test_a_search_is_an_experiment_and_its_trials_are_runs(running: Running) -> None:
    """Over the same routes; people neither change it nor start its runs."""
    ann, bob = running.world.ann, running.world.bob
    trials = running.create(max_trials=2) and running.play("find-rate")["trials"]
    (id_,) = (one.id for one in running.world.store.experiments.searches())
    shown = ann.get(f"/experiments/{id_}").json()
    assert (shown["project"], shown["algorithm"], shown["runs"]) == (None, "random", 2)
    newest, first = ann.get(f"/experiments/{id_}/runs").json()["runs"]
    assert (first["place"], first["job"], newest["ended_as"]) == (0, trials[0]["job"], "succeeded")
    assert first["parameters"] == trials[0]["parameters"]
    compared = ann.get(f"/experiments/{id_}/comparison").json()["parameters"]
    assert "rate" in [one["name"] for one in compared]
    assert ann.get(f"/jobs?all=1&experiment={id_}").json() == ann.get(f"/jobs?all=1&search={id_}").json()
    assert bob.get(f"/experiments/{id_}/runs").status_code == 403
    assert id_ not in ann.get("/experiments").text
    for refused in (
        ann.patch(f"/experiments/{id_}", json={"name": "x"}),
        ann.post(f"/experiments/{id_}/runs", json={}),
        ann.post(f"/runs/{first['id']}/again"),
        ann.delete(f"/runs/{first['id']}"),
    ):
        assert (refused.status_code, "is a search" in refused.text) == (409, True)
    assert ann.delete(f"/experiments/{id_}").status_code == 204
    assert running.world.store.jobs.ids() == frozenset()


def test_they_are_listed_page_by_page(running: Running) -> None:
    for name in "abc":
        running.post(name=name)
    running.post(running.world.bob, name="d")
    first = running.world.ann.get("/searches?limit=2").json()
    assert [one["name"] for one in first["searches"]] == ["a", "b"]
    rest = running.world.ann.get(f"/searches?after={first['next']}").json()
    assert ([one["name"] for one in rest["searches"]], rest["next"]) == (["c", "d"], None)
    (own,) = running.world.ann.get("/searches?owner=bob").json()["searches"]
    assert own["name"] == "d"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"job": {"command": ["x"], "directory": "gone"}}, "directory: 'gone'"),
    ({"algorithm": "grid"}, "rate: step is missing"),
    ({"name": "x" * 127}, "name: it ends with '-3', which leaves 126 characters of 128"),
    ({"job": {"command": ["{units}" * 10_000]}, "parameters": LONG}, "has more than 98,304 characters"),
    ({"parameters": {}, "algorithm": "list", "configurations": [{"a": 1}, WIDE]}, "65,536 at most"),
]


def test_what_makes_no_sense_is_refused(running: Running, subtests: pytest.Subtests) -> None:
    for change, said in REFUSED:
        with subtests.test(said=said):
            answer = running.post(**change)
            assert answer.status_code == 422
            assert said in answer.json()["detail"]
    paths = running.world.settings.paths
    assert [*paths.searches.iterdir(), *paths.incoming.iterdir()] == []


def test_names_are_given_once_and_archives_looked_at(running: Running) -> None:
    assert running.post(name="one").status_code == 201
    answer = running.post(name="one")
    assert (answer.status_code, answer.json()["next"]) == (409, "take another name")
    assert running.post(name="two", code=b"no archive").status_code == 422
    unnamed = running.post(name="").json()
    assert unnamed["name"] == unnamed["id"]
    running.look()
    assert running.show(unnamed["id"])["counts"] == {"queued": 2}


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("has_submitted", [True, False])
def test_a_service_that_dies_while_it_submits_submits_once(
    running: Running, monkeypatch: pytest.MonkeyPatch, has_submitted: bool
) -> None:
    submit = JobTrials.submit

    def killed(*arguments: Any) -> None:
        if has_submitted:
            submit(*arguments)
        raise KilledError

    monkeypatch.setattr(JobTrials, "submit", killed)
    with pytest.raises(KilledError):
        running.create(max_trials=1)
    monkeypatch.undo()
    running.restart()
    running.look()
    (job,) = running.world.store.jobs.page(JobQuery(limit=None)).jobs
    shown = running.play("find-rate")
    assert (shown["state"], [trial["job"] for trial in shown["trials"]]) == ("succeeded", [job.id])


def test_one_that_was_stopped_goes_on_and_is_deleted_with_its_jobs(running: Running) -> None:
    running.create()
    first, *_ = running.world.store.jobs.live()
    running.finish(first, accuracy=0.5)
    running.look()
    assert running.world.ann.post("/searches/find-rate/restart").status_code == 409
    refused = running.world.ann.delete("/searches/find-rate")
    assert (refused.status_code, refused.json()["detail"]) == (409, "find-rate is running")
    assert running.world.ann.post("/searches/find-rate/stop").json()["wanted"] == "stop"
    running.look()
    for job in running.world.store.jobs.live():
        assert job.wanted is Wanted.STOP
        running.world.go(job.id, State.STOPPED)
    running.look()
    stopped = running.show("find-rate")
    assert (stopped["state"], stopped["counts"]) == ("stopped", {"succeeded": 1, "stopped": 2})
    assert running.world.bob.post("/searches/find-rate/restart").status_code == 403
    assert running.world.ann.post("/searches/find-rate/restart").json()["state"] == "queued"
    running.look()
    shown = running.play("find-rate")
    assert (shown["state"], shown["counts"]) == ("succeeded", {"succeeded": 4})
    assert shown["trials"][0]["metric"] == 0.5
    again = running.world.ann.post("/searches/find-rate/restart")
    assert (again.status_code, again.json()["detail"]) == (409, "find-rate is succeeded")
    assert running.world.ann.delete("/searches/find-rate").status_code == 204
    assert running.world.store.jobs.ids() == frozenset()
    assert list(running.world.settings.paths.searches.iterdir()) == []


def test_the_best_is_run_again_as_a_job(running: Running) -> None:
    running.create(max_trials=2)
    assert running.world.ann.post("/searches/find-rate/run-best").status_code == 409
    shown = running.play("find-rate")
    best = running.world.store.jobs.get(shown["best"]["job"])
    assert running.world.bob.post("/searches/find-rate/run-best").status_code == 403
    answer = running.world.ann.post("/searches/find-rate/run-best", headers={"Idempotency-Key": "k"})
    again = running.world.ann.post("/searches/find-rate/run-best", headers={"Idempotency-Key": "k"})
    assert again.json()["id"] == answer.json()["id"]
    assert answer.status_code == 201
    job = running.world.store.jobs.get(answer.json()["id"])
    assert (job.name, job.command, job.environment) == ("find-rate-best", best.command, best.environment)
    assert (running.world.files(job.id).code / "train.py").read_text() == "print()"
    assert running.show("find-rate")["counts"] == {"succeeded": 2}
