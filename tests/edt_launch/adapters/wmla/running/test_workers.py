"""What the driver does otherwise for a WMLA program."""

import socket
from pathlib import Path

import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.layout import ResultDir, executor_id
from edt_launch.adapters.wmla.running.workers import WmlaWorkers, of_rank, processes
from edt_launch.cluster import network
from edt_launch.membership.protocol import MemberPhase, Slot, Worker

HERE = "127.0.0.1"


@pytest.fixture
def result(tmp_path):
    return ResultDir(tmp_path / "a result")


def workers_of(result, framework=Framework.ELASTIC, **more):
    return WmlaWorkers(["x"], framework=framework, exec_id="e", result=result, **more)


def worker(serial, slot):
    return Worker(serial, slot, MemberPhase.STARTING, started_at=0.0, rank=slot.index)


def test_an_elastic_worker_has_a_log_folder_and_no_rank(result):
    workers = workers_of(result)
    slot = Slot("localhost", 0)
    found = workers.variables_of(worker(4, slot), [slot], HERE)
    assert Path(found["LOG_DIR"]).is_dir()
    assert Path(found["LOG_DIR"]).name.startswith(executor_id("e", 5))
    assert "RANK" not in found
    assert workers.copy_of(4, "stdout").read_bytes() == b""


def test_a_gang_meets_at_a_free_port_of_this_machine(result):
    workers = workers_of(result, Framework.GANG)
    slots = [Slot("localhost", index) for index in range(2)]
    first, second = (
        workers.variables_of(worker(index, slot), slots, HERE) for index, slot in enumerate(slots)
    )
    assert first["MASTER_ADDR"] == second["MASTER_ADDR"] == "127.0.0.1"
    assert first["MASTER_PORT"] == second["MASTER_PORT"]
    assert (first["RANK"], second["RANK"], second["WORLD_SIZE"]) == ("0", "1", "2")
    port = int(first["MASTER_PORT"])
    with socket.socket() as stranger, pytest.raises(OSError, match="Address already in use"):
        stranger.bind((HERE, port))
    with socket.create_server((HERE, port)), socket.create_connection((HERE, port), timeout=30):
        pass


def test_or_at_the_address_of_its_first_host(result, monkeypatch):
    monkeypatch.setattr(network.HostChecker, "is_remote", lambda self, host: host != "localhost")
    workers = workers_of(result, Framework.GANG)
    slots = [Slot("192.0.2.7", 0), Slot("localhost", 0)]
    found = workers.variables_of(worker(0, slots[0]), slots, "10.0.0.1")
    assert found["MASTER_ADDR"] == "192.0.2.7"
    assert "MASTER_PORT" not in found  # the agent of that host fills it in
    assert workers.meets_at(slots) == "192.0.2.7"
    assert found["LOG_DIR"].endswith(".192.0.2.7")


SLOTS = (Slot("a", 0, "3"), Slot("b", 0, "1"), Slot("b", 1, "2"))


def test_a_single_process_has_the_devices_of_the_host_with_the_most() -> None:
    assert processes(Framework.SINGLE, SLOTS) == (Slot("b", 0, "1,2"),)
    assert processes(Framework.SINGLE, (Slot("a", 0), Slot("a", 1))) == (Slot("a", 0),)
    assert processes(Framework.SINGLE, (Slot("a", 0, "7"), Slot("b", 0, "8"))) == (Slot("a", 0, "7"),)
    assert processes(Framework.SINGLE, ()) == ()


def test_ranks_count_along_the_allocation() -> None:
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")
    ranks = [of_rank(SLOTS, slot) for slot in SLOTS]
    assert [tuple(rank[name] for name in names) for rank in ranks] == [
        ("0", "0", "1", "0"), ("1", "0", "2", "1"), ("2", "1", "2", "1"),
    ]  # fmt: skip
    assert all((rank["WORLD_SIZE"], rank["WMLA_NWORKER"]) == ("3", "3") for rank in ranks)
    assert {rank["WMLA_WORKER_NDEVICE"] for rank in ranks} == {"1"}
