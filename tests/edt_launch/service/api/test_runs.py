import json
from dataclasses import replace
from typing import Any

import pytest

from edt_launch.service import experiments, submission
from edt_launch.service.database.records import AllocationRecord
from edt_launch.service.series_cache import ValuesCache
from edt_launch.service.states import State
from lab import COMMAND, Lab, event, made, refused
from records import write_run
from world import NOW, World, tar


@pytest.fixture
def lab(world: World) -> Lab:
    return Lab(world)


def test_a_run_is_a_job_of_who_started_it(lab: Lab) -> None:
    lab.join("bob", "editor")
    (lab.world.settings.data_folder / "mnist").mkdir()
    experiment = lab.experiment(lab.definition()["id"], source="mnist")["id"]
    (run,) = lab.run(experiment, lab.bob, environment={"RATE": "0.1"}, priority=2)
    job = lab.world.store.jobs.get(run["job"])
    assert (job.owner, job.name, job.min, job.max, job.priority) == ("bob", "net", 1, 4, 2)
    assert job.command == tuple(COMMAND)
    assert job.environment == {"DATA_DIR": str(lab.world.settings.data_folder / "mnist"), "RATE": "0.1"}
    assert (lab.world.files(job.id).code / "train.py").read_text() == "print()"
    assert (run["owner"], run["state"], run["code"], run["name"]) == ("bob", "queued", 1, "net")
    assert lab.ann.get(f"/experiments/{experiment}/runs").json() == {"runs": [run], "next": None}
    assert lab.ann.get(f"/runs/{run['id']}").json() == run
    assert lab.ann.get(f"/experiments/{experiment}").json()["runs"] == 1
    refused(lab.ann.get("/runs/raaaaaaaa"), 404, "there is no run")


def test_programs_for_wmla_are_told_their_folder(lab: Lab) -> None:
    definition = lab.definition(framework="edtPyTorch", command=["train.py"])["id"]
    (run,) = lab.run(lab.experiment(definition)["id"])
    job = lab.world.store.jobs.get(run["job"])
    assert (job.framework, job.data_dir) == ("edtPyTorch", str(lab.world.settings.data_folder))
    assert job.environment == {}


def test_all_definitions_are_run_or_some(lab: Lab) -> None:
    first, second = lab.definition()["id"], lab.definition(name="two")["id"]
    experiment = lab.experiment(first, second, command=["python", "train.py", "-x"])["id"]
    assert [run["name"] for run in lab.run(experiment)] == ["net", "two"]
    (run,) = lab.run(experiment, definitions=[second], name="mine", command=["true"])
    assert (run["name"], run["job_name"]) == ("two", "mine")
    commands = [job.command for job in lab.world.store.jobs.page().jobs]
    assert commands == [("python", "train.py", "-x")] * 2 + [("true",)]
    post = f"/experiments/{experiment}/runs"
    refused(lab.ann.post(post, json={"definitions": ["daaaaaaaa"]}), 422, "is none of 'first'")
    refused(lab.ann.post(f"/experiments/{lab.experiment(name='e')['id']}/runs", json={}), 409, "no training")
    highest = {"priority": 5}
    lab.world.context.settings.__dict__["highest_priority"] = 3
    refused(lab.ann.post(post, json=highest), 403, "the highest that you may give")


def test_none_is_started_if_one_cannot_be(lab: Lab) -> None:
    other = lab.definition(name="two", code=tar({"other.py": b""}), command=["python", "other.py"])["id"]
    experiment = lab.experiment(lab.definition()["id"], other)["id"]
    answer = lab.ann.post(f"/experiments/{experiment}/runs", json={"command": COMMAND})
    refused(answer, 422, "'train.py' is not a file of the submitted code")
    assert lab.world.store.jobs.ids() == frozenset()
    assert lab.ann.get(f"/experiments/{experiment}/runs").json()["runs"] == []


def test_an_attempt_that_is_repeated_starts_once(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"], lab.definition(name="two")["id"])["id"]
    path, headers = f"/experiments/{experiment}/runs", {"Idempotency-Key": "k"}
    first, second = (lab.ann.post(path, json={}, headers=headers).json() for _ in range(2))
    assert first == second
    assert len(lab.world.store.jobs.ids()) == 2


def test_what_starting_does_to_others_is_foreseen(lab: Lab) -> None:
    other = lab.world.submit(lab.bob, name="digits", max=4)["id"]
    lab.world.go(other, State.STARTING, State.RUNNING)
    held = (("node1", ("0", "1", "2", "3")),)
    lab.world.store.jobs.record({other: {"size": 4, "target": 4, "held": held, "running_since": NOW - 1e4}})
    experiment = lab.experiment(lab.definition()["id"])["id"]
    shown = lab.ann.post(f"/experiments/{experiment}/runs?dry_run=1", json={}).json()
    assert shown["lines"] == ["net starts at once with 2.", "digits of bob goes from 4 to 2."]
    assert {(one["job"], one["from"], one["to"]) for one in shown["changes"]} == {(other, 4, 2), (None, 0, 2)}
    assert lab.world.store.jobs.ids() == {other}


def test_a_run_is_run_again_as_it_was(lab: Lab) -> None:
    definition = lab.definition()["id"]
    experiment = lab.experiment(definition)["id"]
    (run,) = lab.run(experiment, environment={"RATE": "0.1"})
    new = {"code": ("c", tar({"train.py": b"print(2)"}))}
    assert lab.ann.post(f"/definitions/{definition}/code", files=new).json()["code"] == 2
    lab.ann.patch(f"/experiments/{experiment}", json={"trainings": []})
    assert lab.ann.post(f"/runs/{run['id']}/again?dry_run=1").json()["lines"][0].startswith("net starts")
    answer = lab.ann.post(f"/runs/{run['id']}/again")
    assert answer.status_code == 201, answer.text
    (again,) = answer.json()["runs"]
    first, second = (lab.world.store.jobs.get(one["job"]) for one in (run, again))
    assert (first.command, first.environment, first.max) == (second.command, second.environment, second.max)
    assert (again["code"], again["digest"]) == (1, run["digest"])
    assert (lab.world.files(second.id).code / "train.py").read_text() == "print()"
    lab.ann.delete(f"/definitions/{definition}")
    refused(lab.ann.post(f"/runs/{run['id']}/again"), 409, "'net' was deleted, and its code")


def test_long_keys_are_told_apart(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    keys = [{"Idempotency-Key": first + "x" * 127} for first in "AAB"]
    runs = [made(lab.ann.post(f"/experiments/{experiment}/runs", json={}, headers=key)) for key in keys]
    first, again, other = (one["runs"][0]["id"] for one in runs)
    assert first == again != other


def test_a_run_whose_experiment_is_deleted_meanwhile_is_not_started(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    unpack = submission.unpack

    def unpack_slowly(*given: Any) -> None:
        assert lab.ann.delete(f"/experiments/{experiment}").status_code == 204
        unpack(*given)

    monkeypatch.setattr(submission, "unpack", unpack_slowly)
    refused(lab.ann.post(f"/experiments/{experiment}/runs", json={}), 409, "'first' was deleted just now")
    assert lab.world.store.jobs.ids() == set()
    assert list(lab.world.settings.paths.jobs.iterdir()) == []


def test_an_experiment_whose_run_is_started_meanwhile_is_not_deleted(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    find = experiments.experiment_for

    def find_slowly(*given: Any) -> Any:
        monkeypatch.undo()
        found = find(*given)
        lab.run(experiment)
        return found

    monkeypatch.setattr(experiments, "experiment_for", find_slowly)
    refused(lab.ann.delete(f"/experiments/{experiment}"), 409, "has runs that have not ended")


def test_only_members_see_which_jobs_are_runs(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    (run,) = lab.run(experiment)
    (job,) = lab.ann.get(f"/jobs?experiment={experiment}").json()["jobs"]
    assert job["id"] == run["job"]
    refused(lab.bob.get(f"/jobs?experiment={experiment}"), 403, "no member of the project")


def test_secrets_of_commands_are_hidden_where_runs_are_compared(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    for secret in ("hunter2", "hunter3"):
        lab.run(experiment, command=["python", "train.py", "--password", secret, f"--api-key={secret}"])
    text = lab.ann.get(f"/experiments/{experiment}/comparison").text
    assert "hunter" not in text


def test_a_run_without_a_step_has_lasted_as_long_as_it_had_devices(lab: Lab) -> None:
    (run,) = lab.run(lab.experiment(lab.definition()["id"])["id"])
    for time, devices in ((NOW, (("node1", ("0",)),)), (NOW + 60, ())):
        lab.world.store.history.add([AllocationRecord(run["job"], "ann", time, 0, 1, devices, "")])
    lab.world.clock.now += 60
    lab.world.go(run["job"], State.STARTING, State.FAILED)
    lab.world.store.jobs.record({run["job"]: {"started": None}})
    shown = lab.ann.get(f"/runs/{run['id']}").json()
    assert (shown["seconds"], shown["hours"]) == (60, 1 / 60)


def test_a_run_outlives_its_job(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    (run,) = lab.run(experiment)
    held = (("node1", ("0", "1")),)
    for time, devices in ((NOW, held), (NOW + 1800, ())):
        lab.world.store.history.add([AllocationRecord(run["job"], "ann", time, 0, 2, devices, "")])
    lab.world.clock.now += 3600
    lab.finish(run["job"], loss=0.5)
    assert lab.ann.delete(f"/jobs/{run['job']}").status_code == 204
    shown = lab.ann.get(f"/runs/{run['id']}").json()
    assert (shown["state"], shown["ended_as"], shown["hours"], shown["size"]) == (
        "deleted",
        "succeeded",
        1.0,
        None,
    )
    assert shown["values"] == {"loss": {"lowest": 0.5, "highest": 0.5, "last": 0.5, "missing": 0}}
    assert lab.ann.delete(f"/runs/{run['id']}").status_code == 204
    assert lab.ann.get(f"/experiments/{experiment}/runs").json()["runs"] == []


def test_an_experiment_whose_runs_go_on_is_not_deleted(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    (run,) = lab.run(experiment)
    refused(lab.ann.delete(f"/experiments/{experiment}"), 409, run["job"], "stop them first")
    refused(lab.ann.delete(f"/runs/{run['id']}"), 409, run["job"], "stop it first")
    lab.finish(run["job"])
    assert lab.ann.delete(f"/experiments/{experiment}").status_code == 204
    assert lab.world.store.jobs.ids() == {run["job"]}


def test_runs_are_compared_by_what_differs(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"], metric="accuracy")["id"]
    path = f"/experiments/{experiment}/comparison"
    assert lab.ann.get(path).json() == {"runs": [], "metrics": [], "parameters": []}
    rates = {"0.1": (0.5, 0.9), "0.2": (0.4, 0.8)}
    runs = []
    for rate, (loss, accuracy) in rates.items():
        runs += lab.run(experiment, command=[*COMMAND, f"--rate={rate}", "--steps", "9"])
        lab.finish(runs[-1]["job"], loss=loss, accuracy=accuracy)
    shown = lab.ann.get(path).json()
    first, second = (run["id"] for run in runs)
    assert [run["id"] for run in shown["runs"]] == [second, first]
    assert shown["parameters"] == [{"name": "--rate", "values": ["0.2", "0.1"]}]
    assert shown["metrics"] == [
        {"name": "accuracy", "objective": "maximize", "best": first},
        {"name": "loss", "objective": "minimize", "best": second},
    ]
    assert [run["values"]["loss"]["last"] for run in shown["runs"]] == [0.4, 0.5]
    chosen = lab.ann.get(path, params={"run": [first]}).json()
    assert ([run["id"] for run in chosen["runs"]], chosen["parameters"]) == ([first], [])
    refused(lab.ann.get(f"{path}?run=raaaaaaaa"), 422, "is none of 'first'")
    refused(lab.bob.get(path), 403, "bob is no member")


def test_members_follow_each_others_curves_and_strangers_do_not(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    (run,) = lab.run(experiment)
    own = lab.world.submit(lab.bob)["id"]
    lab.finish(run["job"], loss=0.5, accuracy=0.25)
    path = f"/series?jobs={run['job']},{own}&name=accuracy&points=100"
    refused(lab.bob.get(path), 403, f"{run['job']} is a job of ann")
    lab.join("bob", "viewer")
    shown = lab.bob.get(path).json()
    first, second = shown["series"]
    assert (shown["name"], first["job"], first["values"], first["step"]) == (
        "accuracy",
        run["job"],
        [0.25],
        [1],
    )
    assert (second["job"], second["values"]) == (own, [])
    refused(lab.ann.get(f"/series?jobs={own}"), 403, "is a job of bob")
    refused(lab.ann.get("/series?jobs=jaaaaaaaa"), 404, "there is no job")
    assert lab.ann.get("/series?jobs=" + ",".join([run["job"]] * 21)).status_code == 422


def test_a_hundred_runs_are_compared_and_those_that_ended_are_not_read_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    lab.finish(lab.run(experiment, environment={"SEED": "0"})[0]["job"], loss=0)
    (first,) = lab.world.store.experiments.runs(experiment, None, 1)
    job = lab.world.store.jobs.get(first.job)
    letters = [f"{one}{two}" for one in "abcdefghij" for two in "abcdefghij"][1:]
    for number, end in enumerate(letters, start=1):
        id_, spec = f"jaaaaaa{end}", first.spec | {"environment": {"SEED": str(number)}}
        lab.world.store.jobs.add(replace(job, id=id_))
        lab.world.files(id_).root.mkdir()
        lab.world.files(id_).output.events.write_text(event(loss=number))
        run = replace(first, id=f"raaaaaa{end}", job=id_, spec=spec, outcome=None)
        write_run(lab.world.store, run)
    path = f"/experiments/{experiment}/comparison"
    shown: dict[str, Any] = lab.ann.get(path).json()
    assert len(shown["parameters"][0]["values"]) == 100
    assert shown["metrics"][0]["best"] == shown["runs"][-1]["id"]
    monkeypatch.setattr(ValuesCache, "columns", None)
    assert lab.ann.get(path).json() == shown
    first = lab.ann.get(f"/experiments/{experiment}/runs?limit=60").json()
    rest = lab.ann.get(f"/experiments/{experiment}/runs?limit=60&before={first['next']}").json()
    assert [run["id"] for run in first["runs"] + rest["runs"]] == [run["id"] for run in shown["runs"]]
    assert json.dumps(shown).count("SEED") == 1
