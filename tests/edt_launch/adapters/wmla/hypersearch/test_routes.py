from typing import Any

import pytest

from edt_launch.service.jobs.states import State, Wanted
from laboratory import Laboratory
from searches import content
from world import tar

FIELDS = "hpoName state running complete failed progress createtime creator duration experiments best reason"
EXPERIMENT = "id appId driverId state metricVal hyperParams startTime endTime maxiteration number reason"


def test_a_search_is_shown_as_clients_expect(laboratory: Laboratory) -> None:
    name = laboratory.start(maxJobNum=4)
    assert name.startswith("ann-hpo-")
    shown = laboratory.play(name)
    assert {*shown} == {*FIELDS.split()}
    assert shown["progress"] == "4/4"
    assert shown["createtime"] == "1970-01-12 13:46:40"
    assert shown["duration"] == "00:00:02"
    first = shown["experiments"][0]
    found = laboratory.ann.get(f"execs/{first['id']}").json()
    assert (found["id"], found["submissionId"]) == (first["appId"], first["driverId"])
    assert {*first} == {*EXPERIMENT.split()}
    assert (first["id"], first["number"], first["maxiteration"]) == (first["appId"], 0, 0)
    rate, units = first["hyperParams"]
    value = str(first["metricVal"])
    assert rate == {"name": "rate", "dataType": "double", "fixedVal": value, "userDefined": False}
    assert (units["name"], units["dataType"]) == ("units", "int")
    assert shown["best"] == min(shown["experiments"], key=lambda trial: trial["metricVal"])
    assert laboratory.ann.get("hypersearch").json() == [shown]


def test_owners_see_their_own(laboratory: Laboratory) -> None:
    name = laboratory.start()
    assert laboratory.bob.get("hypersearch").json() == []
    assert len(laboratory.admin.get("hypersearch").json()) == 1
    requests = [("GET", ""), ("PUT", ""), ("PUT", "/force"), ("PUT", "/restart"), ("DELETE", "")]
    for method, path in requests:
        answer = laboratory.bob.request(method, f"hypersearch/{name}{path}")
        assert answer.status_code == 400
        assert answer.text == f"Error 400: Hpo task {name!r} not found.\n"
    assert laboratory.admin.get(f"hypersearch/{name}").status_code == 200
    assert laboratory.show(name)["state"] == "RUNNING"


def test_a_search_is_stopped_started_again_and_deleted(laboratory: Laboratory) -> None:
    world, ann = laboratory.world, laboratory.ann
    name = laboratory.start(maxJobNum=3, maxParalleJobNum=2)
    first, second = laboratory.jobs()
    laboratory.finish(first, 0.5)
    assert ann.put(f"hypersearch/{name}").status_code == 204
    refused(ann.put(f"hypersearch/{name}"), 400, "is being stopped already")
    refused(ann.delete(f"hypersearch/{name}"), 409, f"Hpo task {name} is RUNNING")
    laboratory.look()
    assert world.store.jobs.get(second.id).wanted is Wanted.STOP
    world.go(second.id, State.STOPPED)
    laboratory.look()
    shown = laboratory.show(name)
    assert (shown["state"], [trial["state"] for trial in shown["experiments"]]) == (
        "STOPPED",
        ["FINISHED", "KILLED"],
    )
    assert (shown["progress"], shown["complete"], shown["failed"]) == ("1/3", 1, 0)
    refused(ann.put(f"hypersearch/{name}"), 400, "is STOPPED already")

    assert ann.put(f"hypersearch/{name}/restart").status_code == 204
    laboratory.look()
    assert second.id not in world.store.jobs.ids()
    shown = laboratory.play(name)
    assert (shown["state"], shown["progress"]) == ("FINISHED", "3/3")
    assert shown["experiments"][0]["metricVal"] == 0.5
    refused(ann.put(f"hypersearch/{name}/restart"), 400, "is FINISHED")

    assert ann.delete(f"hypersearch/{name}").status_code == 204
    assert world.store.jobs.ids() == frozenset()
    assert list(world.settings.paths.searches.iterdir()) == []
    assert not any(path.name.startswith("j") for path in world.settings.paths.jobs.iterdir() if path.is_dir())
    refused(ann.get(f"hypersearch/{name}"), 400, "not found")


def test_a_trial_is_kept_until_its_result_has_been_read(laboratory: Laboratory) -> None:
    name = laboratory.start(maxJobNum=1)
    (job,) = laboratory.jobs()
    laboratory.finish(job, 0.5)
    exec_id = laboratory.show(name)["experiments"][0]["id"]
    assert laboratory.ann.delete("execs").status_code == 204
    refused(laboratory.ann.delete(f"execs/{exec_id}"), 409, "whose search has yet to read")
    assert laboratory.world.ann.delete(f"/jobs/{job.id}").status_code == 409
    laboratory.look()
    assert laboratory.show(name)["experiments"][0]["metricVal"] == 0.5
    assert laboratory.ann.delete("execs").status_code == 204
    assert laboratory.world.store.jobs.ids() == frozenset()
    laboratory.look()
    assert (laboratory.show(name)["state"], laboratory.show(name)["progress"]) == ("FINISHED", "1/1")


def test_names_may_be_chosen_once(laboratory: Laboratory) -> None:
    answer = laboratory.post(laboratory.ann, content() | {"hpoName": "my-search"})
    assert answer.json() == "my-search"
    refused(laboratory.post(laboratory.bob, content() | {"hpoName": "my-search"}), 409, "'my-search' already")
    refused(laboratory.post(laboratory.bob, content() | {"hpoName": "algorithm"}), 400, "is reserved")
    refused(laboratory.post(laboratory.bob, content() | {"hpoName": "haaaaaaaa"}), 400, "looks like an id")


@pytest.mark.parametrize(
    "change, said",
    [
        ({"args": "--exec-start edtPyTorch --model-main ../main.py"}, "leads out of the model directory"),
        ({"sigName": "a\nb"}, "modelSpec.sigName"),
    ],
)
def test_what_no_trial_could_run_is_refused(
    laboratory: Laboratory, change: dict[str, Any], said: str
) -> None:
    given = content()
    given["modelSpec"] |= change
    refused(laboratory.post(laboratory.ann, given), 400, said)
    refused(laboratory.post(laboratory.ann, code=tar({"../out.py": b""})), 400, "")
    paths = laboratory.world.settings.paths
    assert [*paths.searches.iterdir(), *paths.incoming.iterdir()] == []


def refused(answer: Any, status: int, said: str) -> None:
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (status, "text/plain")
    assert answer.text.startswith(f"Error {status}: ")
    assert said in answer.text
