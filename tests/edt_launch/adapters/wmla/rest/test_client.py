"""Every request that notebooks for WMLA make, formed as they form it, over real sockets."""

import csv
import io
import json
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from edt_launch.service.app.home import Home
from edt_launch.service.app.settings import Settings
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.states import State
from played import WEIGHTS, Player
from serving import Service, serving
from tiers import full
from world import tar

pytestmark = pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")

MODEL_DIR = {"pytorch_mnist/pytorch_mnist_EDT.py": b"print('hello')", "pytorch_mnist/edtcallback.py": b""}
METHODS = ("get", "post", "put", "delete")
get, post, put, delete = (partial(getattr(requests, name), verify=False, timeout=60) for name in METHODS)
OCTETS = {"accept": "application/octet-stream"}
LARGEST = 2**20


@dataclass
class Cluster:
    """A service, and what a notebook's first cells say of it."""

    service: Service
    player: Player
    model_tar: Path

    def __post_init__(self) -> None:
        self.master_host, _, port = self.service.url.rpartition(":")
        self.sc_rest_url = f"{self.master_host}:{port}/platform/rest/conductor/v1"
        self.dl_rest_url = f"{self.master_host}:{port}/platform/rest/deeplearning/v1"
        self.files = {"file": (self.model_tar.name, self.model_tar.read_bytes())}
        self.auth_url = f"{self.master_host}:{port}/auth/v1/logon"


@pytest.fixture(scope="module", params=["http", full("https")])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp(request.param)
    model_tar = folder / "pytorch_mnist.modelDir.tar"
    model_tar.write_bytes(tar(MODEL_DIR))
    options = ["--slots", "4", "--max-upload", str(LARGEST)]
    options += ["--tls-self-signed"] if request.param == "https" else []
    with serving(folder / "home", *options) as service:
        assert service.url.startswith(f"{request.param}:")
        for name, password in (("Admin", "Admin-Admin"), ("dse_user", "pa:ss wörd")):
            administer(service, "POST", "users", name=name)
            administer(service, "PUT", f"users/{name}/password", password=password)
        store = Store.opened(Settings(home=folder / "home").database_url)
        yield Cluster(service, Player(store, Home(folder / "home"), time.time()), model_tar)
        store.close()


def administer(service: Service, method: str, path: str, **content: Any) -> None:
    headers = {"Authorization": f"Bearer {service.token}"}
    answer = requests.request(
        method, f"{service.url}/api/v1/{path}", json=content, headers=headers, verify=False, timeout=60
    )
    assert answer.ok, answer.text


def metrics_of(log: str) -> list[list[float]]:
    """Time, steps, iteration, loss and accuracy of each line, taken apart as notebooks do."""
    rows = csv.reader(io.StringIO(log.replace(":", ",")))
    return [[float(value) for value in row[4:13:2]] for row in rows if len(row) == 13]


def test_the_story_of_a_1_2_notebook(cluster: Cluster) -> None:
    dl, sc = cluster.dl_rest_url, cluster.sc_rest_url
    auth = ("Admin", "Admin-Admin")
    common_headers = {"accept": "application/json"}

    r = get(f"{sc}/auth/logon", auth=auth, headers=common_headers)
    assert r.ok
    r = get(f"{dl}/execs/frameworks", auth=auth, headers=common_headers)
    assert [item["name"] for item in r.json()] == ["edtPyTorch", "PyTorch", "distPyTorch"]
    assert all(isinstance(line, str) for item in r.json() for line in item["desc"])

    args = "--exec-start edtPyTorch --cs-datastore-meta type=fs,data_path=pytorch-mnist \
                   --model-dir pytorch_mnist --edt-options maxWorkers=2 \
                   --model-main pytorch_mnist_EDT.py --epochs 10 "
    url = f"{dl}/execs?sigName=dli-sig&args={args}"
    r = post(url, auth=auth, headers=common_headers, files=cluster.files)
    assert r.status_code == 200, r.text
    submitted = r.json()
    exec_id, sig_id, submission_id = (submitted[name] for name in ("id", "sigId", "submissionId"))
    assert (submitted["args"], submitted["state"], submitted["userName"]) == (args, "SUBMITTED", "Admin")
    job = cluster.player.job(exec_id)
    assert job.command == ("pytorch_mnist_EDT.py", "--numWorker", "2", "--epochs", "10")
    assert (job.directory, job.min, job.max) == ("pytorch_mnist", 1, 2)
    assert job.data_dir == str(cluster.player.home.data / "pytorch-mnist")
    assert get(f"{sc}/instances/{sig_id}/applications?state=RUNNING", auth=auth).json() == []

    cluster.player.start(exec_id)
    r = get(f"{sc}/instances/{sig_id}/applications?state=RUNNING", auth=auth, headers=common_headers)
    (application,) = (one for one in r.json() if one["driver"]["id"] == submission_id)
    assert application["driver"]["state"] == "RUNNING"
    assert application["gpuslots"] == 2
    assert 2.5 < application["apprunduration"] < 5
    assert application["gpumemused"]["total"] == application["gpudevutil"]["total"] == 0
    executor_id = application["executors"][0]["id"]
    assert executor_id.startswith("1-")

    r = get(f"{dl}/execs/{exec_id}/log", auth=auth, headers=common_headers)
    metrics = metrics_of(r.json())
    assert [steps for _, steps, _, _, _ in metrics] == [1, 2, 3, 4, 5]
    assert metrics[0] == [1582083900001, 1, 2, 2.3, 0.1]
    for kind in ("outlog", "errlog", "outerrlog"):
        r = get(f"{dl}/execs/{exec_id}/log?logType={kind}", auth=auth, headers=common_headers)
        assert isinstance(r.json(), str)
    place = f"{sc}/instances/{sig_id}/applications/{submission_id}"
    for stream in ("stdout", "stderr"):
        r = get(f"{place}/logs/{stream}/download", auth=auth, headers=OCTETS)
        assert r.text.startswith(f"driver {stream} 0 é\n")
        r = get(f"{place}/{executor_id}/logs/{stream}/download", auth=auth, headers=OCTETS)
        assert r.text.startswith(f"executor 1 {stream} 0 é\n")

    cluster.player.finish(exec_id)
    assert get(f"{dl}/execs/{exec_id}", auth=auth).json()["state"] == "FINISHED"
    for headers, stream in ((common_headers, False), (OCTETS, True), ({}, True)):
        check_result(get(f"{dl}/execs/{exec_id}/result", auth=auth, headers=headers, stream=stream))
    assert exec_id in [one["id"] for one in get(f"{dl}/execs", auth=auth).json()]
    r = delete(f"{dl}/execs/{exec_id}", auth=auth)
    assert (r.status_code, r.content) == (204, b"")
    r = get(f"{dl}/execs/{exec_id}", auth=auth)
    assert (r.status_code, r.text) == (400, f"Error 400: Execution ID '{exec_id}' not found.\n")


def check_result(r: requests.Response) -> None:
    header = r.headers["Content-Disposition"]
    size = int(header.split("size=")[1])
    (name,) = (piece.split("=")[1] for piece in header.split(";") if piece.startswith("filename="))
    assert name.startswith("dlpd-model-")
    assert name.endswith("-result.zip")
    content = b"".join(r.iter_content(chunk_size=2**14))
    assert len(content) == size
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.read("model/train/model_epoch_final.pth") == WEIGHTS
        assert json.loads(archive.read("val_dict_list.json"))[0]["steps"] == 1


def token_of(cluster: Cluster) -> str:
    ignored = {"username": "dse_user", "password": "ignored"}
    r = get(cluster.auth_url, auth=("dse_user", "pa:ss wörd"), json=ignored)
    assert r.status_code == 200, r.text
    return str(r.json()["accessToken"])


def test_the_story_of_a_2_x_notebook(cluster: Cluster) -> None:
    dl, token = cluster.dl_rest_url, token_of(cluster)
    common_headers = {"Accept": "application/json", "X-Auth-Token": token}
    r = get(f"{dl}/execs/frameworks", headers=common_headers)
    assert {"deployMode", "execMode", "maxWorkers"} <= set(r.json()[0])

    args = "--exec-start edtPyTorch --cs-datastore-meta type=fs \
                     --numWorker=2 --workerDeviceNum 1 \
                     --model-main pytorch_mnist_EDT.py --model-dir pytorch_mnist "
    r = post(f"{dl}/execs?args={args}", headers=common_headers, files=cluster.files)
    assert r.status_code == 200, r.text
    told = r.json()
    exec_id = told["id"]
    assert len(told) == 15
    names = ("args", "creator", "framework", "elastic", "numWorker", "appId", "submissionId")
    assert [told[name] for name in names] == [args, "dse_user", "edtPyTorch", True, 2, exec_id, exec_id]
    assert exec_id.startswith("wmla-")
    assert cluster.player.job(exec_id).command == ("pytorch_mnist_EDT.py",)

    get_exec = f"{dl}/execs/{exec_id}"
    assert get(get_exec, headers=common_headers).json()["state"] == "SUBMITTED"
    cluster.player.store.jobs.record({cluster.player.job(exec_id).id: {"why": {"text": "waits"}}})
    state = get(get_exec, headers=common_headers).json()["state"]
    assert state == "PENDING_CRD_SCHEDULER"
    cluster.player.start(exec_id, size=3)
    assert get(get_exec, headers=common_headers).json()["state"] == "RUNNING"

    text_headers = {"Accept": "text/plain", "X-Auth-Token": token}
    r = get(f"{dl}/execs/{exec_id}/log", headers=text_headers)
    assert len(metrics_of(r.text)) == 5
    app = f"{dl}/scheduler/applications/{exec_id}"
    r = get(f"{app}/driver/logs/stdout?lastlines=3", headers=text_headers)
    assert r.text == "".join(f"driver stdout {line} é\n" for line in (97, 98, 99))
    r = get(f"{app}/executor/1/logs/stderr?lastlines=1000", headers=text_headers)
    assert len(r.text.splitlines()) == 100
    r = get(f"{app}/driver/logs/launcherlog", headers=text_headers)
    assert r.text == "edt-launch: started\n"
    bearer = {"Authorization": f"Bearer {token}"}
    (told,) = get(f"{dl}/scheduler/applications?applicationid={exec_id}", headers=bearer).json()
    assert (len(told["task0"]), len(told["task12n"])) == (1, 3)
    url = f"{dl}/scheduler/engine/applications?start=0&length=10&sort=-submit_time&state=Running"
    (told,) = get(url, headers=bearer).json()
    assert (told["id"], told["used_gpu"], told["type"]) == (exec_id, 3, "ELASTIC")
    assert get(f"{dl}/scheduler/engine/applications/{exec_id}", headers=bearer).json() == [told]

    r = post(f"{dl}/execs/{exec_id}/stop", headers=common_headers)
    assert (r.status_code, r.content) == (204, b"")
    r = put(f"{app}/stop", headers=common_headers)
    assert r.status_code == 204
    cluster.player.finish(exec_id, State.STOPPED)
    url = f"{dl}/execs?limit=10&state=KILLED&sort_by=id:desc"
    (killed,) = get(url, headers=common_headers).json()
    assert (killed["id"], killed["state"]) == (exec_id, "KILLED")
    octets = {**OCTETS, "X-Auth-Token": token}
    check_result(get(f"{dl}/execs/{exec_id}/result", headers=octets, stream=True))
    assert post(f"{dl}/execs/{exec_id}/deploy", headers=common_headers).status_code == 501
    assert delete(f"{dl}/execs/{exec_id}", headers=common_headers).status_code == 204

    logoff = cluster.auth_url.replace("logon", "logoff")
    assert post(logoff, headers=common_headers).status_code == 204
    assert get(f"{dl}/execs", headers=common_headers).status_code == 401


@pytest.mark.parametrize(
    "path, password", [("execs?args=--exec-start PyTorch", "Admin-Admin"), ("hypersearch", "wrong")]
)
def test_who_sends_too_much_is_told(cluster: Cluster, path: str, password: str) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="m.tar"\r\n\r\n'
    body = [head, *[bytes(2**16)] * (10 * LARGEST // 2**16)]
    headers = {"content-type": "multipart/form-data; boundary=x"}
    chunked = 401 if password == "wrong" else 413
    for data, status in ((b"".join(body), 413), (iter(body), chunked)):
        answer = post(f"{cluster.dl_rest_url}/{path}", auth=("Admin", password), data=data, headers=headers)
        assert answer.status_code == status
        assert answer.text.startswith(f"Error {status}: ")
        assert (status == 413) == ("; send what the script needs alone" in answer.text)
        assert ".edtignore" not in answer.text
