"""--rdzv-endpoint and --rdzv-conf of the back end edt."""

import sys
from pathlib import Path

import pytest

from edt_launch.service.app.home import Home
from edt_rendezvous.endpoint import PORTS, allocation_path, port_of, workers_per_node

HOME = Home(Path("/srv/edt"))


def test_an_endpoint_is_a_file_or_the_id_of_a_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert allocation_path("jabcdefgh", HOME) == Path("/srv/edt/jobs/jabcdefgh/allocation")
    assert allocation_path("allocation", HOME) == tmp_path / "allocation"
    (tmp_path / "node:29400").touch()
    assert allocation_path("node:29400", HOME) == tmp_path / "node:29400"


def test_jobs_have_ports_of_their_own_unless_one_is_given():
    ports = {port_of(Path("/a/allocation"), run_id, {}) for run_id in ("1", "2", "3")}
    assert len(ports) == 3
    assert ports < set(PORTS)
    assert port_of(Path("/a"), "1", {"port": "4000"}) == 4000
    with pytest.raises(ValueError, match="--rdzv-conf port=70000: expected a whole number from 1 to 65535"):
        port_of(Path("/a"), "1", {"port": "70000"})


def test_the_workers_of_a_node_come_from_the_command_line_of_torchrun(monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["/usr/bin/torchrun", "--nnodes", "1:4", "--nproc_per_node=3", "main.py"]
    )
    assert workers_per_node({}) == 3
    assert workers_per_node({"nproc": "2"}) == 2
    monkeypatch.setattr(sys, "argv", ["/usr/bin/accelerate", "launch"])
    with pytest.raises(ValueError, match="add --rdzv-conf nproc=N"):
        workers_per_node({})
    with pytest.raises(ValueError, match="--rdzv-conf nproc=0: expected a whole number from 1"):
        workers_per_node({"nproc": 0})
