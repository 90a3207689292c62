from pathlib import Path
from typing import Any

from asking import CODE, Asking, submitted
from edt_launch.service.jobs.states import State, Wanted
from played import Player
from world import tar

SUBMIT = {"command": ["python", "x.py"], "min": 1, "max": 2}


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()]


def test_owners_see_their_own_and_administrators_all(asking: Asking) -> None:
    ann, bob, admin = (asking.modern(name) for name in ("ann", "bob", "admin"))
    first, second = submitted(ann)["id"], submitted(bob)["id"]
    assert (ids(ann.get("/execs")), ids(bob.get("/execs"))) == ([first], [second])
    assert ids(admin.get("/execs")) == [second, first]
    for method, path in (
        *(("GET", f"/execs/{first}{part}") for part in ("", "/log", "/result")),
        *(("POST", f"/execs/{first}/{part}") for part in ("stop", "deploy")),
        *(("DELETE", f"/execs/{first}"), ("PUT", f"/scheduler/applications/{first}/stop")),
        ("GET", f"/scheduler/applications/{first}/driver/logs/stdout"),
        ("GET", f"/scheduler/applications?applicationid={first}"),
        ("GET", f"/scheduler/engine/applications/{first}"),
    ):
        answer = bob.request(method, path)
        assert (answer.status_code, answer.text) == (403, f"Error 403: {first} is an execution of ann.\n")
    assert asking.world.store.jobs.page().jobs[0].wanted is Wanted.RUN
    assert admin.get(f"/execs/{first}").json()["creator"] == "ann"


def test_both_interfaces_have_the_same_jobs(asking: Asking) -> None:
    world, client = asking.world, asking.modern()
    exec_id = submitted(client)["id"]
    job_id = world.submit(world.ann, **SUBMIT, code=tar({"x.py": b""}))["id"]
    assert ids(client.get("/execs")) == [job_id, exec_id]
    (other,) = {job["id"] for job in world.ann.get("/jobs").json()["jobs"]} - {job_id}
    assert client.get(f"/execs/{other}").json()["id"] == exec_id
    assert asking.classic().get(f"/execs/{job_id}").json()["submissionId"] == job_id
    world.go(job_id, State.STARTING, State.SUCCEEDED)
    world.go(other, State.STARTING, State.FAILED)
    assert client.delete(f"/execs/{job_id}").status_code == 204
    assert world.ann.get(f"/jobs/{job_id}").status_code == 404
    assert client.get(f"/execs/{exec_id}").json()["state"] == "ERROR"
    assert world.ann.delete(f"/jobs/{other}").status_code == 204
    assert client.get(f"/execs/{exec_id}").text == f"Error 400: Execution ID '{exec_id}' not found.\n"


def test_listings_can_be_narrowed_and_sorted(asking: Asking, player: Player) -> None:
    client = asking.modern()
    names = [submitted(client, args=f"--exec-start distPyTorch --numWorker {n}")["id"] for n in (10, 1, 9)]
    assert ids(client.get("/execs?sort_by=id")) == names
    assert ids(client.get("/execs?sort_by=numWorker:asc&limit=2")) == [names[1], names[2]]
    player.start(names[0])
    player.finish(names[0])
    assert ids(client.get("/execs?state=FINISHED&sort_by=id:desc&limit=10")) == names[:1]
    assert ids(client.get("/execs?state=submitted&sort_by=id:asc")) == names[1:]
    for query in ("limit=0", "sort_by=nothing", "sort_by=id:up"):
        answer = client.get(f"/execs?{query}")
        assert answer.status_code == 400
        assert answer.text.startswith("Error 400: ")


def test_what_lives_is_stopped_before_its_owner_deletes_it(asking: Asking, player: Player) -> None:
    client = asking.modern()
    first, second = submitted(client)["id"], submitted(client)["id"]
    player.start(first)
    answer = client.delete(f"/execs/{first}")
    assert (answer.status_code, answer.text) == (
        409,
        f"Error 409: {first} is RUNNING; stop it first, and delete it when it has ended.\n",
    )
    assert client.post(f"/execs/{first}/stop").status_code == 204
    assert player.job(first).wanted is Wanted.STOP
    assert client.get(f"/execs/{first}").json()["state"] == "RUNNING"
    player.finish(first, State.STOPPED)
    assert client.get(f"/execs/{first}").json()["state"] == "KILLED"
    assert asking.modern("admin").delete("/execs").status_code == 204
    assert client.get(f"/execs/{first}").status_code == 200
    answer = client.delete("/execs")
    assert (answer.status_code, answer.content) == (204, b"")
    assert ids(client.get("/execs")) == [second]


def test_files_are_put_beside_the_script_unless_their_names_are_bad(asking: Asking) -> None:
    def send(name: str) -> Any:
        files = [("file", (name, b"one = 1")), ("file", ("m.modelDir.tar", tar(CODE)))]
        return asking.modern().post("/execs", params={"args": "--exec-start edtPyTorch"}, files=files)

    answer = send("../up.py")
    assert (answer.status_code, "no file can have" in answer.text) == (400, True), answer.text
    assert asking.modern().get("/execs").json() == []
    folder = Path(send("helper.py").json()["workDir"])
    assert (folder / "helper.py").read_bytes() == b"one = 1"
