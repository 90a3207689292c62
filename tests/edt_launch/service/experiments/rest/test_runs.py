from edt_launch.service.cluster.records import AllocationRecord
from lab import COMMAND, Lab, refused
from world import NOW, tar


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


def test_all_definitions_are_run_or_some(lab: Lab) -> None:
    first, second = lab.definition()["id"], lab.definition(name="two")["id"]
    experiment = lab.experiment(first, second)["id"]
    assert [run["name"] for run in lab.run(experiment)] == ["net", "two"]
    (run,) = lab.run(experiment, definitions=[second], command=["true"])
    assert run["name"] == "two"
    assert lab.world.store.jobs.get(run["job"]).command == ("true",)
    lab.world.context.settings.__dict__["highest_priority"] = 3
    refused(lab.ann.post(f"/experiments/{experiment}/runs", json={"priority": 5}), 403, "highest")


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


def test_secrets_of_commands_are_hidden_where_runs_are_compared(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    for secret in ("hunter2", "hunter3"):
        hidden = ["--password", secret, f"--api-key={secret}"]
        lab.run(experiment, command=[*COMMAND, *hidden, f"--rate={secret[-1]}"])
    path = f"/experiments/{experiment}/comparison"
    answer = lab.ann.get(path)
    assert ("--rate" in answer.text, "hunter" in answer.text) == (True, False)
    refused(lab.bob.get(path), 403, "bob is no member")


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
    assert (shown["state"], shown["ended_as"], shown["hours"]) == ("deleted", "succeeded", 1.0)
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
    assert (first["job"], first["values"], first["step"]) == (run["job"], [0.25], [1])
    assert (second["job"], second["values"]) == (own, [])
    both = lab.bob.get(f"{path}&name=loss&name=accuracy").json()["series"][0]
    assert (both["values"], both["others"]["loss"]["values"]) == ([0.25], [0.5])
    refused(lab.ann.get(f"/series?jobs={own}"), 403, "is a job of bob")
    assert lab.ann.get("/series?jobs=" + ",".join([run["job"]] * 21)).status_code == 422
