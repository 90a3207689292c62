"""Jobs whose hosts are ranks of mpirun, each the agent of its host, without ssh."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness import FAKE_WORKER, PATIENCE, ElasticJob

AS_HOST = 'SLURMD_NODENAME=h${0}$OMPI_COMM_WORLD_RANK exec "$@"'
"""Gives each rank a host name of its own, as srun does."""

WORKER = f"""
import sys
sys.path.insert(0, {str(FAKE_WORKER.parent)!r})
from fake_worker import begin, end, until_size
launcher, place = begin()
for size in (2, 1):
    place = until_size(launcher, place, size)
end(launcher)
"""

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


def test_a_job_grows_to_the_host_of_another_rank_and_moves_there(job: ElasticJob) -> None:
    script = job.folder / "worker.py"
    script.write_text(WORKER)
    job.allocate(1, "h0")
    options = ("--under-mpi", "--view", "plain", "--no-warm-start")
    job.start(script, options=options, prefix=mpirun("sh", "-c", AS_HOST, ""))
    job.until_size(1)
    job.write_allocation("# edt allocation v1 generation=2\nh7:1\n")
    job.until(lambda: job.events("allocation_rejected"))
    job.write_allocation("# edt allocation v1 generation=3\nh0:1\nh1:1\n")
    job.until_size(2)
    job.write_allocation("# edt allocation v1 generation=4\nh1:1\n")
    assert job.wait() == 0, job.stderr
    assert [event["size"] for event in job.events("world")] == [1, 2, 1]
    assert [event["host"] for event in job.events("started")] == ["h0", "h1"]
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
