"""What a command line client of WMLA asks, formed as it forms it."""

import json
import re
from typing import Any

import pytest
from requests.utils import requote_uri
from starlette.testclient import TestClient

from asking import CODE, PASSWORD, Asking, submitted
from edt_launch.adapters.wmla.rest.authenticator import AUTH
from played import Player
from world import tar

SOURCE = json.dumps([{"type": "fs", "location": {"paths": "images"}}])


@pytest.fixture
def dlicmd(asking: Asking) -> TestClient:
    """The client of somebody who has logged on."""
    token = asking.client(AUTH).get("/logon", auth=("ann", PASSWORD)).json()["accessToken"]
    return asking.client(headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})


def start(dlicmd: TestClient, line: str) -> Any:
    files = [("file", ("tmpx1.modelDir.tar", tar(CODE)))]
    return dlicmd.post(requote_uri(f"/execs/?args={line}"), files=files)


def test_a_submissions_line_is_sent_as_it_was_typed(
    asking: Asking, dlicmd: TestClient, player: Player
) -> None:
    answer = start(
        dlicmd,
        "--exec-start distPyTorch   --model-dir=m \\\n   --model-main main.py\t"
        f"--numWorker=2 --workerDeviceNum 1 --data-source '{SOURCE}' --msd-env A=1 --msd-env=B=two "
        "--msd-priority 5010 --appName trial --debug-level debug --workerMemory 4g --python-version 3.11 "
        "--msd-pack-id x --conda-env-name dlipy3 --consumer /lab --exclusive --query-args x=y --rate 0.1 "
        "-- --appName own 'a b'",
    )
    assert answer.status_code == 200, answer.text
    job = player.job(answer.json()["id"])
    assert job.command == ("main.py", "--rate", "0.1", "--appName", "own", "a b")
    assert (job.framework, job.name, job.min, job.max, job.directory) == ("distPyTorch", "trial", 2, 2, "m")
    assert job.data_dir == str(player.home.data / "images")
    found = {name: job.environment[name] for name in ("A", "B", "DLI_LOGGER_LEVEL", "DLI_EXECID")}
    assert found == {"A": "1", "B": "two", "DLI_LOGGER_LEVEL": "debug", "DLI_EXECID": answer.json()["appId"]}
    refused = start(dlicmd, "--exec-start PyTorch --model-dir m --user-cmd -- sh x")
    assert (refused.status_code, "--user-cmd is not possible here" in refused.text) == (400, True)


def test_the_owners_tree_and_what_runs_in_it(asking: Asking, dlicmd: TestClient) -> None:
    assert asking.world.admin.put("/shares/lab", json={}).status_code == 200
    assert asking.world.admin.put("/shares/ann", json={"parent": "lab"}).status_code == 200
    exec_id = submitted(dlicmd)["id"]
    tree = dlicmd.get("/resplans/resplantree").json()
    assert (tree["id"], tree["pid"]) == ("-", "")
    lab = next(node for node in tree["childTreeDto"] if node["id"] == "lab")
    assert lab == {"id": "lab", "pid": "-", "childTreeDto": [{"id": "ann", "pid": "lab", "childTreeDto": []}]}
    assert dlicmd.get("/resplans/resplan/lab").json() == lab
    (told,) = dlicmd.get(f"/scheduler/engine/applications/{exec_id}").json()
    assert (told["consumer"], told["tag"], told["submit_user"]) == ("/-/lab", "/-/lab/ann", "ann")
    answer = dlicmd.get("/resplans/resplan/nobody")
    assert (answer.status_code, answer.text) == (400, "Error 400: Resource plan 'nobody' not found.\n")


def test_what_it_asks_besides(asking: Asking, dlicmd: TestClient) -> None:
    conf = dlicmd.get("/conf").json()
    assert conf["DLI_DATA_FS"] == str(asking.world.settings.data_folder)
    assert all(isinstance(value, str) for value in conf.values())
    names = ["edtPyTorch", "PyTorch", "distPyTorch"]
    assert [one["name"] for one in dlicmd.get("/execs/frameworks").json()] == names
    assert dlicmd.get("/frameworks/all").json() == names
    assert dlicmd.get("/scheduler/kubernetesobjects?type=pod&name=x").json() == {"items": []}
    assert dlicmd.get("/status").json()["status"] == "Running"
    for path in ("resplans/resplan/ann", "hypersearch/algorithm/Random"):
        assert dlicmd.delete(f"/{path}").status_code == 405
    exec_id = submitted(dlicmd)["id"]
    assert dlicmd.post(f"/execs/{exec_id}/deploy", json={"kernel": exec_id}).status_code == 501
    header = dlicmd.get(f"/execs/{exec_id}/result?args=x").headers["content-disposition"]
    assert re.search(r";filename=dlpd-model-\S+-result\.zip;", header)
