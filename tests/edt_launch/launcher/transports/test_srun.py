"""Agents as steps of a Slurm job."""

import subprocess
from pathlib import Path

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.choice import Transports
from edt_launch.launcher.transports.srun import Srun
from edt_launch.launcher.transports.ssh import Ssh

JOB = {"SLURM_JOB_ID": "7"}


def test_hosts_that_name_it_are_reached_by_it_and_others_over_ssh() -> None:
    transports = Transports(RunOptions(), JOB, lambda host: True)
    transports.follow([HostSlots("n2", 1, transport="srun")])
    assert transports.of("n2") == Srun("7")
    assert isinstance(transports.of("far"), Ssh)


def test_the_agent_shares_the_node_with_all_that_the_job_runs_there() -> None:
    words = Srun("7").command("n2", ("agent", "a b"))
    assert words[:5] == ["srun", "--jobid", "7", "--nodelist", "n2"]
    assert words[-2:] == ["agent", "a b"]
    assert "--overlap" in words


def test_a_pilot_is_found_by_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in (("squeue", "echo '5 other'; echo '6 edt-pilot-x'"), ("srun", 'echo "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    words = (
        Transports(RunOptions(), {}, lambda host: True)._get("slurm-pilot").command("n2", ("agent", "a b"))
    )
    said = subprocess.check_output(words, text=True)
    assert said.startswith("--jobid 6 --nodelist n2 --nodes 1")
    assert said.endswith("agent a b\n")
