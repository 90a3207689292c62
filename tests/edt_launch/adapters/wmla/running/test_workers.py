"""What the driver does otherwise for a WMLA program."""

from pathlib import Path
from platform import node

import pytest

from edt_launch.adapters.wmla.running.layout import ResultDir, executor_id
from edt_launch.adapters.wmla.running.workers import REMOTE_PORTS, Workers
from edt_launch.cluster import network
from edt_launch.membership.protocol import Phase, Slot, Worker


@pytest.fixture
def job(tmp_path):
    return {
        "EDT_FRAMEWORK": "distPyTorch",
        "DLI_EXECID": "e",
        "RESULT_DIR": str(tmp_path / "a result"),
        "LOG_DIR": "of somebody else",
        "RANK": "7",
        "PATH": "/bin",
    }


def worker(serial, slot):
    return Worker(serial, slot, Phase.STARTING, started_at=0.0, rank=slot.index)


def test_there_are_none_without_a_framework():
    assert Workers.of({"PATH": "/bin"}, "127.0.0.1") is None


def test_what_workers_have_of_their_own_is_taken_out_of_the_jobs_variables(job):
    assert Workers.of(job, "127.0.0.1") is not None
    assert job.keys() == {"DLI_EXECID", "RESULT_DIR", "PATH"}


def test_an_elastic_worker_has_a_log_folder_and_no_place(job):
    workers = Workers.of({**job, "EDT_FRAMEWORK": "edtPyTorch"}, "127.0.0.1")
    slot = Slot("localhost", 0)
    found = workers.variables(worker(4, slot), [slot])
    assert not workers.is_gang
    assert Path(found["LOG_DIR"]).is_dir()
    assert Path(found["LOG_DIR"]).name.startswith(executor_id("e", 5))
    assert "RANK" not in found
    assert workers.printed(4, "stdout").read_bytes() == b""


@pytest.mark.parametrize("spoilt", ["log", "run/processes"])
def test_an_executor_whose_folders_cannot_be_made_costs_no_other(job, spoilt):
    told = []
    workers = Workers.of({**job, "EDT_FRAMEWORK": "edtPyTorch"}, "127.0.0.1", told.append)
    result = ResultDir(Path(job["RESULT_DIR"]))
    slots = [Slot("localhost", index) for index in range(2)]
    for folder in result.folders:
        folder.mkdir(parents=True)
    first = (
        result.log_dir(executor_id("e", 1), node())
        if spoilt == "log"
        else result.processes / executor_id("e", 1)
    )
    first.touch()
    found = [workers.variables(worker(index, slot), slots) for index, slot in enumerate(slots)]
    assert Path(found[0]["LOG_DIR"]) == result.log_dir(executor_id("e", 1), node())
    assert Path(found[1]["LOG_DIR"]).is_dir()
    (message,) = told
    assert all(part in message for part in ("executor 1", str(first), "File exists"))


def test_a_gang_meets_at_a_free_port_of_this_machine(job):
    workers = Workers.of(job, "127.0.0.1")
    slots = [Slot("localhost", index) for index in range(2)]
    first, second = (workers.variables(worker(index, slot), slots) for index, slot in enumerate(slots))
    assert workers.is_gang
    assert first["MASTER_ADDR"] == second["MASTER_ADDR"] == "127.0.0.1"
    assert first["MASTER_PORT"] == second["MASTER_PORT"]
    assert (first["RANK"], second["RANK"], second["WORLD_SIZE"]) == ("0", "1", "2")


def test_or_at_the_address_of_its_first_host(job, monkeypatch):
    monkeypatch.setattr(network.HostChecker, "is_remote", lambda self, host: host != "localhost")
    workers = Workers.of(job, "10.0.0.1")
    slots = [Slot("192.0.2.7", 0), Slot("localhost", 0)]
    found = workers.variables(worker(0, slots[0]), slots)
    assert found["MASTER_ADDR"] == "192.0.2.7"
    assert int(found["MASTER_PORT"]) in REMOTE_PORTS
    assert found["LOG_DIR"].endswith(".192.0.2.7")
