"""Jobs whose hosts are ranks of mpirun, each the agent of its host, without ssh."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness import PATIENCE, SLOW, TRACED, ElasticJob, Undisturbed

AS_HOST = 'SLURMD_NODENAME=h${0}$OMPI_COMM_WORLD_RANK exec "$@"'
"""Gives each rank a host name of its own, as srun does."""

SCRIPT = """
import os, sys, time
leaked = [name for name in os.environ if name.startswith(("PMIX_", "OMPI_", "PRTE_"))]
print(os.environ["HOROVOD_HOSTNAME"], leaked)
sys.stdout.flush()
time.sleep(float(sys.argv[1]))
sys.exit(int(sys.argv[2]) if os.environ["HOROVOD_HOSTNAME"] == "h1" else 0)
"""


def mpirun(*words: str) -> list[str]:
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", *words]


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")


def test_a_job_grows_to_the_host_of_another_rank_and_back(job: ElasticJob, undisturbed: Undisturbed) -> None:
    job.allocate(1, "h0")
    options = ("--under-mpi", "--view", "plain")
    job.start(TRACED, job.results, *SLOW, options=options, prefix=mpirun("sh", "-c", AS_HOST, ""))
    for generation, (hosts, size) in enumerate([("h0:1\nh1:1", 2), ("h1:1", 1)], 2):
        job.until_size(1 if size == 2 else 2)
        job.until_more_steps(2)
        job.write_allocation(f"# edt allocation v1 generation={generation}\n{hosts}\n")
        job.until_size(size)
    job.until_more_steps(2)
    job.write_allocation("# edt allocation v1 generation=9\nh7:1\n")
    job.until(lambda: job.events("allocation_rejected"))
    assert job.end() == 0, job.stderr
    undisturbed.check(job)
    assert job.survivors() == []


def launched(folder: Path, host: str, *arguments: str) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "edt_launch.launcher.command", "--under-mpi", "--view", "plain"]
    options = ["--slots-per-host", "1", "--max-restarts", "0", "--output-dir", str(folder / "out")]
    command = mpirun("sh", "-c", AS_HOST if host == "own" else 'exec "$@"', "", *launch, *options)
    pipe, pipes = subprocess.PIPE, subprocess.STDOUT
    return subprocess.Popen([*command, str(script), *arguments], stdout=pipe, stderr=pipes, text=True)


@pytest.mark.full
def test_the_job_decides_how_mpirun_ends(tmp_path: Path) -> None:
    ended = launched(tmp_path, "own", "0", "7")
    said, _ = ended.communicate(timeout=300)
    assert ended.returncode == 1, said
    assert "h0 []" in said
    assert "h1 []" in said
    assert "exit code 7" in said


@pytest.mark.full
def test_two_ranks_of_one_host_are_refused(tmp_path: Path) -> None:
    ended = launched(tmp_path, "same", "0", "0")
    said, _ = ended.communicate(timeout=300)
    assert ended.returncode != 0
    assert "has an agent already: give each host a name of its own, and one agent" in said


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_mpirun_leaves_no_process(tmp_path: Path, number: int) -> None:
    running = launched(tmp_path, "own", "600", "0")
    assert running.stdout is not None
    missing = {"h0 []", "h1 []"}
    for line in running.stdout:
        missing -= {text for text in missing if text in line}
        if not missing:
            break
    assert not missing
    family = psutil.Process(running.pid).children(recursive=True)
    os.kill(running.pid, number)
    running.communicate(timeout=300)
    assert running.returncode != 0
    assert psutil.wait_procs(family, timeout=PATIENCE)[1] == []
