"""The command `edt-launch`: its options, usage errors and exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.discovery_script import Script
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import ExitCode
from edt_launch.launcher import command


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory with a script, on a machine with three cores."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    Path("a script.py").touch()
    return tmp_path


def invoke(*words):
    return CliRunner().invoke(command.app, words)


def test_everything_after_the_script_is_the_scripts(planned, folder):
    result = invoke("--min-np", "1", "--max-np=2", "a script.py", "--max-np", "9", "--help", "-H", "x")
    assert result.exit_code == 0
    ((program, plan),) = planned
    assert program.command == [sys.executable, "a script.py", "--max-np", "9", "--help", "-H", "x"]
    assert plan.limits == SizeLimits(1, 2)
    assert plan.allocation == Allocation(1, (HostSlots("localhost", 2),))
    assert plan.paths.root.parent == folder / "runs"


@pytest.mark.parametrize(
    "options, limits, slots",
    [
        ([], SizeLimits(1, 3), 3),
        (["-H", "h1:4,h2"], SizeLimits(1, 5), 5),
        (["--hostfile", "hosts"], SizeLimits(1, 6), 6),
        (["--allocation", "allocation"], SizeLimits(1, 7), None),
    ],
)
def test_limits_and_slots_by_default(planned, options, limits, slots):
    Path("hosts").write_text("h1 slots=4\nh2:2\n")
    Path("allocation").write_text("# edt allocation v1 generation=1\nh1:7\n")
    result = invoke(*options, "a script.py")
    assert result.exit_code == 0, result.output
    ((_, plan),) = planned
    assert plan.limits == limits
    assert (plan.allocation and plan.allocation.slots) == slots
    assert (plan.follow is None) == (slots is not None)


@pytest.mark.parametrize(
    "words, part",
    [
        ([], "Missing argument"),
        (["--min-np", "4", "--max-np", "2", "a script.py"], "--min-np 4 is more than --max-np 2"),
        (["--min-np", "9", "-H", "h1:2,h2:2", "a script.py"], "more than the 4 slots"),
        (["-H", "h1:1", "--allocation", "f", "a script.py"], "-H and --allocation exclude"),
        (["--output-dir", "a script.py", "a script.py"], "name a folder you may write"),
        (["--under-mpi", "a script.py"], "this process is no rank"),
        (["--port-range", "2000", "a script.py"], "--port-range '2000': expected LOW:HIGH, ports from 1024"),
    ],
)
def test_usage_errors_say_what_is_wrong(words, part):
    result = invoke(*words)
    assert result.exit_code == ExitCode.USAGE
    assert part in result.output


def test_help_imports_neither_torch_nor_horovod():
    slow = ("torch", "horovod", "numpy")
    program = f"import sys, edt_launch.launcher.command; print([m for m in {slow} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True, env=os.environ) == "[]\n"


def discovery_script(folder, mode=0o755):
    path = folder / "discover hosts.sh"
    path.write_text("#!/bin/sh\necho localhost:2\n")
    path.chmod(mode)
    return path


def test_a_host_discovery_script(planned, folder):
    path = discovery_script(folder)
    words = ("--host-discovery-script", path.name, "--slots-per-host", "2", "--max-np", "4")
    assert invoke(*words, "a script.py").exit_code == 0
    ((_, plan),) = planned
    assert plan.source == Script(path, 2)
    assert (plan.allocation, plan.follow, plan.limits) == (None, None, SizeLimits(1, 4))


SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_GPUS_PER_NODE": "2"}


@pytest.mark.parametrize("programs, transport", [((), ""), (("srun",), "srun")])
def test_inside_a_job_of_slurm_its_hosts_and_gpus_are_used(
    planned, tmp_path, monkeypatch, programs, transport
):
    for name, value in (SLURM | {"SLURMD_NODENAME": "n1", "PATH": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    for program in programs:
        (tmp_path / program).touch(0o755)
    result = invoke("--min-np", "3", "a script.py")
    assert result.exit_code == 0, result.output
    ((_, plan),) = planned
    assert plan.limits == SizeLimits(3, 4)
    n1, n2 = HostSlots("n1", 2, ("0", "1")), HostSlots("n2", 2, ("0", "1"), transport)
    assert plan.allocation == Allocation(1, (n1, n2))
    assert str(plan.source) == "Slurm job 7"  # nodes may leave
    assert result.stderr == "edt-launch: uses the hosts of Slurm job 7 (4 slots): n1, n2\n"
