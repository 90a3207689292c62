"""What a command line client of WMLA asks, over real sockets."""

import json
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from dlicmd import Dlicmd
from edt_launch.service.database.store import Store
from edt_launch.service.home import Home
from edt_launch.service.settings import Settings
from edt_launch.service.states import State
from played import WEIGHTS, Player
from serving import PATIENCE, Service, serving
from tiers import full

pytestmark = pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")

SEARCH = {
    "modelSpec": {"args": "--exec-start edtPyTorch --model-dir mnist --model-main main.py"},
    "algoDef": {
        "algorithm": "Random",
        "maxRunTime": -1,
        "maxJobNum": 2,
        "maxParalleJobNum": 2,
        "objectiveMetric": "loss",
        "objective": "minimize",
    },
    "hyperParams": [
        {"name": "rate", "type": "Range", "dataType": "DOUBLE", "minDbVal": 0.001, "maxDbVal": 0.1}
    ],
}


@dataclass
class Terminal:
    """Where the client is used."""

    service: Service
    player: Player
    folder: Path

    def __post_init__(self) -> None:
        self.dlicmd = Dlicmd(self.folder)
        _, _, address = self.service.url.partition("://")
        host, _, port = address.rpartition(":")
        self.address = f"--rest-host {host} --rest-port {port}"
        self.others = f"--master-host={host}:{port} --dli-rest-port=-1"
        self.model = self.folder / "models" / "mnist"
        self.model.mkdir(parents=True)
        (self.model / "main.py").write_text("print()")

    def log_on(self) -> None:
        said = self.dlicmd(f"--logon {self.address} --username ann --password correct-horse")
        assert said == "Logon succeed"

    def run(self, line: str, **more: Any) -> str:
        return self.dlicmd(f"{line} {self.address}", **more)

    def show(self, line: str, **more: Any) -> Any:
        return json.loads(self.run(line, **more))

    def start(self, line: str) -> str:
        """The id of a submission's exec."""
        copying, size, told = self.run(line).splitlines()
        assert copying == "Copying files and directories ..."
        assert size.startswith("Content size: 0.")
        found: dict[str, str] = json.loads(told)
        assert found.keys() == {"execId", "appId"}
        return found["execId"]


@pytest.fixture(scope="module", params=["http", full("https")])
def terminal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp(request.param)
    tls = ["--tls-self-signed"] if request.param == "https" else []
    with serving(folder / "home", "--slots", "4", *tls) as service:
        for path, method, content in (
            ("users", "POST", {"name": "ann"}),
            ("users/ann/password", "PUT", {"password": "correct-horse"}),
            ("shares/lab", "PUT", {}),
            ("shares/ann", "PUT", {"parent": "lab"}),
        ):
            headers = {"Authorization": f"Bearer {service.token}"}
            url = f"{service.url}/api/v1/{path}"
            assert requests.request(
                method, url, json=content, headers=headers, verify=False, timeout=PATIENCE
            ).ok
        store = Store.opened(Settings(home=folder / "home").database_url)
        yield Terminal(service, Player(store, Home(folder / "home"), time.time()), folder)
        store.close()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_who_asks_is_remembered_until_he_logs_off(terminal: Terminal) -> None:
    wrong = terminal.dlicmd(f"--logon {terminal.address} --username ann --password no")
    assert wrong.startswith("Logon failed. HTTP:401 Error 401: ")
    terminal.log_on()
    names = [one["name"] for one in terminal.show("--dl-frameworks")]
    assert names == ["edtPyTorch", "PyTorch", "distPyTorch"]
    assert terminal.dlicmd.host == terminal.service.url
    assert terminal.dlicmd.conf
    assert all(isinstance(value, str) for value in terminal.dlicmd.conf.values())
    assert len(json.loads(terminal.dlicmd(f"--dl-frameworks {terminal.others}"))) == 3
    assert terminal.run("--logoff") == "Logoff. HTTP:204"
    assert terminal.run("--dl-frameworks").startswith("Error 401: ")
    given = f"{terminal.others} --jwt-token {terminal.service.token}"
    assert len(json.loads(terminal.dlicmd(f"--dl-frameworks {given}"))) == 3


def test_all_that_a_submission_may_say(terminal: Terminal) -> None:
    terminal.log_on()
    source = json.dumps([{"type": "fs", "location": {"paths": "images"}}])
    exec_id = terminal.start(
        f"--exec-start distPyTorch   --model-dir={terminal.model}/ \\\n   --model-main main.py\t"
        f"--numWorker=2 --workerDeviceNum 1 --data-source '{source}' --msd-env A=1 --msd-env=B=two "
        "--msd-priority 5010 --appName trial --debug-level debug --workerMemory 4g --python-version 3.11 "
        "--msd-pack-id x --conda-env-name dlipy3 --consumer /lab --exclusive --query-args x=y --rate 0.1 "
        "-- --appName own 'a b'"
    )
    job = terminal.player.job(exec_id)
    assert job.command == ("main.py", "--rate", "0.1", "--appName", "own", "a b")
    assert (job.framework, job.name, job.min, job.max, job.directory) == (
        *("distPyTorch", "trial", 2, 2, "mnist"),
    )
    assert job.data_dir == str(terminal.player.home.data / "images")
    found = {name: job.environment[name] for name in ("A", "B", "DLI_LOGGER_LEVEL", "DLI_EXECID")}
    assert found == {"A": "1", "B": "two", "DLI_LOGGER_LEVEL": "debug", "DLI_EXECID": exec_id}
    classic = terminal.start(
        f"--exec-start edtPyTorch --ig dli-sig --model-dir {terminal.model} --model-main main.py "
        "--cs-datastore-meta type=fs,data_path=mnist/raw --edt-options maxWorkers=3 --epochs 2"
    )
    job = terminal.player.job(classic)
    assert classic.startswith("ann-")
    assert job.command == ("main.py", "--numWorker", "3", "--epochs", "2")
    assert (job.max, job.data_dir) == (3, str(terminal.player.home.data / "mnist/raw"))
    said = terminal.run(f"--exec-start PyTorch --model-dir {terminal.model} --user-cmd -- sh x")
    assert said.splitlines()[-1].startswith("Error 400: --user-cmd is not possible here")


def test_the_life_of_an_exec(terminal: Terminal) -> None:
    terminal.log_on()
    line = f"--exec-start edtPyTorch --model-dir {terminal.model} --model-main main.py --numWorker 2"
    first, second = terminal.start(line), terminal.start(line)
    player = terminal.player
    player.start(first, size=2)
    assert terminal.show(f"--exec-get {first}")["state"] == "RUNNING"
    ids = [one["id"] for one in terminal.show("--exec-get-all")]
    assert ids[:2] == [second, first]
    shown = terminal.show("--exec-get-all", query="limit=10&state=RUNNING&sort_by=id:desc")
    assert [one["id"] for one in shown] == [first]
    for kind, stream in (("outlogs", "stdout"), ("errlogs", "stderr")):
        logs = terminal.run(f"--exec-{kind} {first}")
        starts = [f"{who} {stream} 0 é" for who in ("driver", "executor 1", "executor 2")]
        assert [line for line in logs.splitlines() if line.endswith(" 0 é")] == starts
        assert terminal.run(f"--app-{kind} {first}") == logs
    logs = terminal.run(f"--exec-launcherlogs {first}")
    assert logs == "driver 200\nedt-launch: started\n\nexecutor/1 200\n\nexecutor/2 200\n"
    assert terminal.run(f"--app-launcherlogs {first}") == logs
    output, errors = (terminal.run(f"--exec-{kind} {first}") for kind in ("trainoutlogs", "trainerrlogs"))
    assert output.startswith("[2020-02-19 03:45:01] Train,")
    assert errors.startswith("driver stderr 0")
    assert terminal.run(f"--exec-trainlogs {first}") == output + errors
    player.finish(first)
    *_, name = terminal.run(f"--exec-trainresult {first}").split("Train result is saved to ")
    with zipfile.ZipFile(terminal.folder / name) as archive:
        assert archive.read("model/train/model_epoch_final.pth") == WEIGHTS
    assert f"Deploy exec {first} failed. HTTP:501 " in terminal.run(f"--exec-deploy {first}")

    assert f"Delete exec {second} failed. HTTP:409 " in terminal.run(f"--exec-delete {second}")
    assert terminal.run(f"--exec-stop {second}") == f"Stop exec {second} succeed. HTTP:204 "
    player.store.jobs.move(player.job(second).id, State.STOPPED, "played", player.now)
    assert terminal.show(f"--exec-get {second}")["state"] == "KILLED"
    assert terminal.run(f"--exec-delete {second}") == f"Delete exec {second} succeed. HTTP:204 "
    assert terminal.run("--exec-delete-all").endswith("succeed. HTTP:204 ")
    said = terminal.run(f"--exec-get {first}")
    assert said == f"Error 400: Execution ID '{first}' not found.\n"


def test_applications_until_they_have_ended(terminal: Terminal) -> None:
    terminal.log_on()
    terminal.run("--exec-delete-all")
    line = f"--exec-start edtPyTorch --model-dir {terminal.model} --model-main main.py --numWorker 2"
    waiting, running, ended = (terminal.start(line) for _ in range(3))
    player = terminal.player
    player.start(running, size=2)
    player.start(ended, size=2)
    player.finish(ended)
    active = terminal.show("--app-get-all")
    assert {one["id"]: one["state"] for one in active}.items() >= {running: "RUNNING"}.items()
    assert [one["id"] for one in active if one["id"] in (waiting, running, ended)] == [waiting, running]
    assert [one["id"] for one in terminal.show("--app-history-get-all")] == [ended]
    (shown,) = terminal.show(f"--app-get {running}")
    told = {name: shown[name] for name in ("submit_user", "type", "state", "task12n_num", "consumer", "tag")}
    assert told == {
        "submit_user": "ann",
        "type": "ELASTIC",
        "state": "RUNNING",
        "task12n_num": 2,
        "consumer": "/-/lab",
        "tag": "/-/lab/ann",
    }
    assert terminal.show("--app-analyze")["/-/lab/ann ELASTIC FINISHED"] == 1
    places = terminal.show("--rp-get-all")
    assert {waiting, running} <= set(places["/-/lab/ann"])
    assert "Unknown" not in places

    player.finish(running, State.FAILED)
    assert terminal.run(f"--app-wait {running}") == f"{running} ERROR"
    said = terminal.run("--app-stop-all")
    assert f"Stop application {waiting} succeed. HTTP:204 " in said.splitlines()
    assert running not in said
    two = f"Stop application {running} succeed. HTTP:204 \nStop application {ended} succeed. HTTP:204 "
    assert terminal.run(f"--app-stop {running} {ended}") == two
    player.store.jobs.move(player.job(waiting).id, State.STOPPED, "played", player.now)
    states = {one["id"]: one["state"] for one in terminal.show("--app-history-get-all")}
    assert states == {waiting: "KILLED", running: "ERROR", ended: "FINISHED"}
    assert f"{waiting} KILLED" == terminal.run(f"--app-wait {waiting}")


def test_the_life_of_a_search(terminal: Terminal) -> None:
    terminal.log_on()
    definition = terminal.folder / "search.json"
    definition.write_text(json.dumps(SEARCH))
    said = terminal.run(f"--hpo-start {definition} --model-dir {terminal.model}")
    name = json.loads(said.splitlines()[-1].removeprefix("Start hypersearch with id: "))

    def trials() -> list[str]:
        return [one["id"] for one in terminal.show(f"--hpo-get {name}")["experiments"] if one["id"]]

    def stop() -> None:
        until(lambda: len(trials()) == 2)
        assert terminal.run(f"--hpo-force {name}") == f"Stop hpo {name} succeed. HTTP:204 "
        until(lambda: terminal.show(f"--hpo-get {name}")["state"] == "STOPPED")
        for trial in trials():
            job = terminal.player.job(trial).id
            terminal.player.store.jobs.move(job, State.STOPPED, "played", terminal.player.now)

    stop()
    assert [one["hpoName"] for one in terminal.show("--hpo-get-all")] == [name]
    assert f"Stop hpo {name} failed. HTTP:400 " in terminal.run(f"--hpo-stop {name}")
    assert terminal.run(f"--hpo-restart {name}") == f"Restart hpo {name} succeed. HTTP:204 "
    assert f"Delete hpo {name} failed. HTTP:409 " in terminal.run(f"--hpo-delete {name}")
    stop()
    assert terminal.run(f"--hpo-delete {name}") == f"Delete hpo {name} succeed. HTTP:204 "
    assert terminal.run("--hpo-delete-all").endswith("succeed. HTTP:204 ")
    assert terminal.show("--hpo-get-all") == []
    names = [one["name"] for one in terminal.show("--hpo-algorithm-get-all")]
    assert terminal.show(f"--hpo-algorithm-get {names[0]}")["name"] == names[0]


def test_what_there_is_besides(terminal: Terminal) -> None:
    terminal.log_on()
    assert terminal.show("--rp-get ann") == {"id": "ann", "pid": "lab", "childTreeDto": []}
    assert "failed. HTTP:405 " in terminal.run("--rp-delete ann")
    assert "failed. HTTP:405 " in terminal.run("--hpo-algorithm-delete Random")
    assert terminal.show("--k8s-obj-get pod x") == terminal.show("--k8s-obj-get-all pod") == {"items": []}
    assert terminal.show("--pj-get-all") == []
    assert terminal.show("--status")["status"] == "Running"
