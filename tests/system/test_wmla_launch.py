"""WMLA programs under edt-launch: drivers and their executors, gangs, single processes."""

import json
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.core.errors import ExitCode
from elsewhere import ELSEWHERE, reach
from harness import PROGRAMS, TRACED, ElasticJob
from programs.traced import SAMPLES

MODEL, GANG = PROGRAMS / "wmla model" / "main.py", PROGRAMS / "wmla gang" / "main.py"
FAKE_WORKER = Path(__file__).parents[1] / "edt_launch" / "launcher" / "fake_worker.py"
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
def test_a_paused_job_runs_its_script_again_and_loses_no_step(job: ElasticJob) -> None:
    acts = ({"print": "once"}, training(job), {"answer": "check"}, {"print": "over"})
    job.allocate(2, devices=" devices=4,7")
    start(job, *acts)
    job.until_steps(5)
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    assert until_over(job) == ExitCode.LEFT
    assert "start it again with --result-dir" in job.stderr
    assert job.survivors() == []
    job.allocate(1, devices=" devices=1")
    start(job, *acts)
    job.until(lambda: job.events("restored"))
    assert job.end() == 0
    uses = Counter((row["epoch"], sample) for row in job.trace() for sample in row["samples"])
    assert uses == Counter((epoch, sample) for epoch in range(10) for sample in range(SAMPLES))
    (name,) = {event["id"] for event in job.events("driver")}
    printed = result_of(job).printed(name, "stdout").read_text()
    assert printed.splitlines() == ["once", "once", 'ended {"exit_code": 0, "message": ""}', "over"]
    kinds = Counter(event["event"] for event in job.events())
    assert (kinds["begun"], kinds["ended"]) == (2, 2)


@pytest.mark.full
def test_a_training_that_is_cancelled_ends_and_the_script_goes_on(job: ElasticJob, tmp_path: Path) -> None:
    trained = tmp_path / "trained enough"
    cancel = {"ask": {"type": "cancel", "number": 1}}
    job.allocate(2)
    start(job, training(job), {"wait_for": str(trained)}, cancel, {"answer": ""}, {"print": "over"})
    job.until_steps(5)
    trained.touch()
    assert job.end() == 0, job.stderr
    assert job.survivors() == []
    (name,) = {event["id"] for event in job.events("driver")}
    ended, over = result_of(job).printed(name, "stdout").read_text().splitlines()
    assert json.loads(ended.removeprefix("ended "))["exit_code"] != 0
    assert over == "over"


@pytest.mark.full
def test_workers_are_as_many_as_the_program_can_use(job: ElasticJob, tmp_path: Path) -> None:
    fewer = tmp_path / "fewer"
    limit = ({"wait_for": str(fewer)}, {"ask": {"type": "limit", "max_workers": 1}})
    job.allocate(4, devices=" devices=0,1,2,3")
    start(job, training(job, most=2), *limit, {"answer": "check"})
    job.until_size(2)
    assert {event["device"] for event in job.events("started")} == {"0", "1"}
    fewer.touch()
    job.until_size(1)
    job.until(lambda: job.events("released"))
    assert [event["device"] for event in job.events("released")] == ["1"]
    assert [event["max_workers"] for event in job.events("usable")] == [2, 1]
    assert job.end() == 0
    assert job.survivors() == []


@pytest.mark.full
def test_each_worker_has_folders_and_files_of_its_own(job: ElasticJob) -> None:
    job.allocate(2)
    shows = [sys.executable, "-S", str(FAKE_WORKER), "folders"]
    start(job, {"train": {"number": 1, "program": shows, "max_workers": 2}}, {"answer": "check"})
    assert until_over(job) == 0
    result = result_of(job)
    printed = [json.loads(path.read_text()) for path in result.processes.glob("[12]-*/stdout")]
    assert len({one["LOG_DIR"] for one in printed}) == 2
    assert all(Path(one["LOG_DIR"]).is_dir() and one["EDT_WMLA_LAUNCHER"] is None for one in printed)


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
    assert psutil.wait_procs([grandchild, *job.family], timeout=20)[1] == []


@pytest.mark.full
def test_a_job_goes_on_with_fewer_workers_while_its_script_waits(job: ElasticJob) -> None:
    job.allocate(3)
    start(job, training(job), {"answer": "check"})
    job.until_size(3)
    job.worker(2).kill()
    job.until_size(2)
    assert job.end() == 0
    assert not job.events("restarting")


FABRIC = Path(__file__).parents[1] / "edt_hvd" / "wmla" / "programs" / "main.py"


@pytest.mark.full
def test_a_program_with_a_fabric_model_is_trained_by_executors(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(FABRIC, "--", "--epochs", 1, "--again", options=("--wmla",))
    assert until_over(job) == 0, job.stderr
    result = result_of(job)
    driver = job.events("driver")[0]["id"]
    assert result.printed(driver, "stdout").read_text().count("script runs") == 1
    for executor in result.processes.glob("[1-9]-*/stdout"):
        assert "script runs" not in executor.read_text()
    (log_dir,) = result.log_dirs(driver)
    assert (log_dir / "stdout").read_text().startswith("Train 1 ")
    assert (result.train / "model_epoch_final.pth").exists()
    assert [event["first"] for event in job.events("allocation_accepted")] == [True]
    assert len(job.events("launched")) == 2


@pytest.mark.full
def test_what_fails_in_an_executor_is_the_last_thing_told(job: ElasticJob) -> None:
    job.allocate(1)
    job.start(FABRIC, "--", "--fail", options=("--wmla",))
    assert until_over(job) == ExitCode.JOB_FAILED
    *_, log, cause, driver = job.stderr.splitlines()
    assert log.startswith("log: ")
    assert cause == "cause: RuntimeError: no such file: digit (main.py, line 49)"
    assert driver.startswith("the driver then ended with exit code 1")


# Programs without elasticity.


def start_gang(job: ElasticJob, framework: str, *arguments: str) -> None:
    job.sizes = ["--max-np", "3"]
    job.start(GANG, "--", *arguments, options=("--wmla", "--framework", framework))


def printed(job: ElasticJob) -> list[list[str]]:
    """The lines of each process, by its number."""
    paths = sorted(result_of(job).processes.glob("*/stdout"), key=lambda path: path.parent.name)
    return [path.read_text().splitlines() for path in paths]


def test_a_gang_meets_and_an_early_end_leaves_the_others_alone(job: ElasticJob) -> None:
    job.allocate(3, devices=" devices=5,6,7")
    start_gang(job, "distPyTorch", "1", "later")
    assert until_over(job) == 0
    lines = printed(job)
    places = [json.loads(of_one[0]) for of_one in lines]
    assert [(one["RANK"], one["WORLD_SIZE"], one["CUDA_VISIBLE_DEVICES"]) for one in places] == [
        ("0", "3", "5"), ("1", "3", "6"), ("2", "3", "7"),
    ]  # fmt: skip
    assert {one["MASTER_ADDR"] for one in places} == {"127.0.0.1"}
    assert [of_one[1:] for of_one in lines] == [["sum 6"], ["sum 6", "later"], ["sum 6"]]
    assert job.size() == 3


@pytest.mark.full
@pytest.mark.parametrize("how, said", [("3", "exit code 3"), ("kill", "killed by SIGKILL")])
def test_a_gang_ends_with_the_first_that_fails(job: ElasticJob, how: str, said: str) -> None:
    job.allocate(3)
    start_gang(job, "distPyTorch", "0", "wait", "1", how, "2", "wait")
    assert until_over(job) == ExitCode.JOB_FAILED
    assert f"first failure: rank 1 on localhost, {said}" in job.stderr
    assert not job.events("restarting")
    assert len(job.events("started")) == 3
    assert job.survivors() == []


@pytest.mark.full
def test_a_gang_meets_across_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, log = reach(tmp_path, monkeypatch)
    code = tmp_path / "gang"
    shutil.copytree(GANG.parent, code)
    job = ElasticJob(tmp_path / "job")
    job.sizes = []
    job.start(code / "main.py", options=(*hosts, "--wmla", "--framework", "distPyTorch"))
    assert until_over(job) == 0, job.stderr
    assert log.read_text().split() == [ELSEWHERE]
    places = [json.loads(lines[0]) for lines in printed(job)]
    assert [one["RANK"] for one in places] == ["0", "1", "2"]
    assert {one["MASTER_ADDR"] for one in places} != {"127.0.0.1"}
    assert [lines[1:] for lines in printed(job)] == [["sum 6"]] * 3


@pytest.mark.full
def test_a_paused_gang_begins_anew(job: ElasticJob) -> None:
    job.allocate(3)
    start_gang(job, "distPyTorch", "0", "wait", "1", "wait", "2", "wait")
    job.until(lambda: sum("sum 6" in lines for lines in printed(job)) == 3)
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    assert until_over(job) == ExitCode.LEFT
    assert "there is no checkpoint: started again, the job begins anew" in job.stderr
    assert job.survivors() == []


@pytest.mark.full
def test_a_single_process_has_all_devices(job: ElasticJob) -> None:
    job.allocate(3, devices=" devices=5,6,7")
    start_gang(job, "PyTorch")
    assert until_over(job) == 0
    ((line,),) = printed(job)
    assert json.loads(line)["CUDA_VISIBLE_DEVICES"] == "5,6,7"
    assert json.loads(line)["FRAME_WORK"] == "PyTorch"
    assert [event["device"] for event in job.events("started")] == ["5", "6", "7"]
