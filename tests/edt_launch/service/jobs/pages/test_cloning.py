import json

from browser import browser, shown_again
from world import World

SAME = {"name": "mine", "command": "python train.py", "min": "1", "max": "1", "priority": "0", "weight": "1"}


def test_a_job_is_started_anew_with_other_values(world: World) -> None:
    command = ["python", "train.py", "a b"]
    job = world.submit(world.ann, name="<b>", command=command, environment={"A": "b"})["id"]
    (world.files(job).code / "made.txt").write_text("by the job")
    client = browser(world, "ann")
    page = client.get(f"/jobs/{job}/clone").text
    assert 'value="&lt;b&gt;"' in page
    assert 'value="python train.py &#39;a b&#39;"' in page
    given = SAME | {"command": "python train.py 'c d'", "max": " 3 ", "weight": "0.5"}
    answer = client.post(f"/jobs/{job}/clone", data=given)
    assert answer.status_code == 303
    new = world.store.jobs.get(answer.headers["location"].rpartition("/")[2])
    assert new.id != job
    assert (new.owner, new.name, new.command) == ("ann", "mine", ("python", "train.py", "c d"))
    assert (new.min, new.max, new.weight, new.environment) == (1, 3, 0.5, {"A": "b"})
    files = sorted(path.name for path in world.files(new.id).code.iterdir())
    assert files == ["train.py"]
    assert list(json.loads(world.files(new.id).submitted.read_text())) == ["train.py"]


def test_nobody_clones_anothers_job(world: World) -> None:
    job = world.submit(world.ann)["id"]
    bob = browser(world, "bob")
    assert bob.get(f"/jobs/{job}/clone").status_code == 403
    assert bob.post(f"/jobs/{job}/clone", data=SAME).status_code == 403
    spec = {"command": ["true"], "code_of": job}
    assert world.bob.post("/jobs", data={"spec": json.dumps(spec)}).status_code == 403
    absent = {"command": ["true"], "code_of": "jbbbbbbbb"}
    assert world.bob.post("/jobs", data={"spec": json.dumps(absent)}).status_code == 422
    both = {"command": ["true"], "code_of": job, "path": "/tmp"}
    answer = world.admin.post("/jobs", data={"spec": json.dumps(both)})
    assert "path and code_of are both given" in answer.json()["detail"]


def test_a_job_goes_on_from_a_checkpoint(world: World) -> None:
    job = world.submit(world.ann)["id"]
    folder = world.files(job).output.checkpoint / "step-00000012"
    folder.mkdir(parents=True)
    (folder / "state.pt").write_bytes(b"weights")
    client = browser(world, "ann")
    page = client.get(f"/jobs/{job}/clone?checkpoint=step-00000012").text
    assert "It goes on from a copy of step-00000012." in page
    answer = client.post(f"/jobs/{job}/clone", data=SAME | {"checkpoint": "step-00000012"})
    new = answer.headers["location"].rpartition("/")[2]
    copied = world.files(new).output.checkpoint / "step-00000012"
    assert (copied / "state.pt").read_bytes() == b"weights"
    assert not (copied / "state.pt").samefile(folder / "state.pt")


def test_only_checkpoints_that_there_are_can_be_gone_on_from(world: World) -> None:
    job, client = world.submit(world.ann)["id"], browser(world, "ann")
    for name in ("step-00000099", "../../x", "step-1/../.."):
        answer = client.post(f"/jobs/{job}/clone", data=SAME | {"checkpoint": name})
        shown_again(answer, 422, "checkpoint")
    assert len(world.store.jobs.live()) == 1
