"""WMLA programs under edt-launch: drivers and their executors, gangs."""

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.core.errors import ExitCode
from harness import PATIENCE, PROGRAMS, TRACED, ElasticJob

MODEL, GANG = PROGRAMS / "wmla model" / "main.py", PROGRAMS / "wmla gang" / "main.py"
ELASTIC = ("--wmla", "--checkpoint-interval", "100000")


def training(job: ElasticJob, number: int = 1, most: int = 16, epochs: int = 10) -> dict[str, Any]:
    words = [sys.executable, str(TRACED), str(job.results), "--epochs", str(epochs), "--delay", "0.3"]
    return {"train": {"number": number, "program": words, "max_workers": most}}


def start(job: ElasticJob, *acts: dict[str, Any]) -> None:
    job.start(MODEL, "--", json.dumps(acts), options=ELASTIC)


def until_over(job: ElasticJob) -> int:
    assert job.process is not None
    job.until(lambda: job.process is not None and job.process.poll() is not None, running=False)
    return job.process.returncode


def result_of(job: ElasticJob) -> ResultDir:
    return ResultDir(job.out)


@pytest.mark.full
@pytest.mark.parametrize("whom", ["the launcher", "the driver"])
def test_nothing_is_left_of_a_job_that_loses_a_process(job: ElasticJob, tmp_path: Path, whom: str) -> None:
    child = tmp_path / "child"
    job.allocate(2)
    start(job, {"child": str(child)}, training(job), {"answer": "check"})
    job.until_steps(2)
    assert job.process is not None
    job.remember()
    grandchild = psutil.Process(int(child.read_text()))
    if whom == "the launcher":
        job.process.kill()
        job.process.wait()
    else:
        psutil.Process(job.events("driver")[0]["pid"]).kill()
        assert until_over(job) == ExitCode.JOB_FAILED
        assert "its driver was killed by SIGKILL in the middle of training" in job.stderr
    assert psutil.wait_procs([grandchild, *job.family], timeout=PATIENCE)[1] == []


# Programs without elasticity.


def start_gang(job: ElasticJob, framework: str, *arguments: str, processes: int = 3) -> None:
    job.sizes = ["--max-np", str(processes)]
    job.start(GANG, "--", *arguments, options=("--wmla", "--framework", framework))


def printed(job: ElasticJob) -> list[list[str]]:
    """The lines of each process, by its number."""
    paths = sorted(result_of(job).processes.glob("*/stdout"), key=lambda path: path.parent.name)
    return [path.read_text().splitlines() for path in paths]


def test_a_gang_meets_and_an_early_end_leaves_the_others_alone(job: ElasticJob) -> None:
    job.allocate(2, devices=" devices=5,6")
    start_gang(job, "distPyTorch", "1", "later", processes=2)
    assert until_over(job) == 0
    lines = printed(job)
    places = [json.loads(of_one[0]) for of_one in lines]
    assert [(one["RANK"], one["WORLD_SIZE"], one["CUDA_VISIBLE_DEVICES"]) for one in places] == [
        *(("0", "2", "5"), ("1", "2", "6")),
    ]
    assert {one["MASTER_ADDR"] for one in places} == {"127.0.0.1"}
    # torch 2.8 tells of Gloo's connections on standard output.
    own = [[line for line in of_one[1:] if not line.startswith("[Gloo]")] for of_one in lines]
    assert own == [["sum 3"], ["sum 3", "later"]]
    assert job.size() == 2
