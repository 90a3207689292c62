"""What goes wrong is told last, and leaves nothing behind."""

import re
import signal
from pathlib import Path

import pytest

from harness import PROGRAMS, ElasticJob
from tiers import full

FAILING = PROGRAMS / "failing.py"


def last_lines(job: ElasticJob, count: int = 40) -> str:
    return "\n".join(job.stderr.rstrip().splitlines()[-count:])


def start(job: ElasticJob, how: str, *options: str) -> None:
    """Run it until both of its workers are at work."""
    job.allocate(2)
    job.start(FAILING, how, job.results, options=options)
    job.until(lambda: len(list(job.results.glob("pid.*"))) == 2)
    job.remember()


@pytest.mark.parametrize(
    "how, code, words",
    [
        ("everyone", 1, "sample 17 is broken"),
        full("import", 1, "the dataset is not there"),
        full("late", 1, "the model could not be saved"),
    ],
)
def test_the_first_failure_is_the_last_thing_shown(job: ElasticJob, how: str, code: int, words: str) -> None:
    job.allocate(2)
    job.start(FAILING, how, job.results)
    assert job.end() == 1
    told = last_lines(job)
    assert words in told
    assert re.search(rf"localhost.* exit(ed)?( with)?( code)? {code}", told), told
    log = re.search(r"\S.*/log/rank\.\d+\.log", told)
    assert log, told
    assert words in Path(log.group().split(": ")[-1].strip()).read_text()
    assert job.survivors() == []


def test_a_line_of_ten_megabytes_hides_no_failure(job: ElasticJob) -> None:
    job.allocate(1)
    job.start(FAILING, "chatters", job.results, options=("--no-warm-start",))
    assert job.end() == 1
    assert re.search(r"first failure: rank 0 on \S+, exit code 3", last_lines(job)), last_lines(job)
    (ended,) = job.events("ended")
    assert "exit code 3" in ended["message"]
    assert len(ended["message"]) < 10_000


@pytest.mark.full
def test_workers_in_different_collectives_end_the_job(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(FAILING, "averages", job.results)
    assert job.wait() == 1
    assert "the end of a step (rank 0), edt_hvd.average() (rank 1)" in last_lines(job)
    assert job.survivors() == []


@pytest.mark.full
@pytest.mark.parametrize("how, code", [("raise", 1), ("quits", 0)])
def test_the_others_go_on_without_a_worker_that_failed(job: ElasticJob, how: str, code: int) -> None:
    job.allocate(3)
    job.start(FAILING, how, job.results)
    job.until_size(2)
    failed = job.events("failed")[0]
    assert (failed["rank"], failed["exit_code"]) == (1, code)
    if how == "quits":
        assert failed["reason"] == "rank 1 on localhost ended with exit code 0 in the middle of training"
        assert failed["reason"] in job.stderr
    assert job.process is not None
    job.process.send_signal(signal.SIGTERM)
    assert job.wait() == 143
    assert job.survivors() == []


@pytest.mark.full
@pytest.mark.parametrize("how", ["endless", "stuck", "thread"])
def test_a_signal_ends_the_whole_tree(job: ElasticJob, how: str) -> None:
    """Also workers that ignore it, and those whose interpreter waits for a thread."""
    start(job, how)
    assert job.process is not None
    job.process.send_signal(signal.SIGTERM)
    assert job.wait() == 143
    assert job.survivors() == []


def test_a_second_ctrl_c_leaves_no_shared_memory(job: ElasticJob) -> None:
    start(job, "stuck", "--no-warm-start")
    assert job.process is not None
    names = [path.read_text().strip("/") for path in job.results.glob("lock.*")]
    locks = [Path(f"/dev/shm/sem.{name}") for name in names]
    assert len([lock for lock in locks if lock.exists()]) == 2
    for _ in range(2):
        job.process.send_signal(signal.SIGINT)
        job.until(lambda: "Ctrl-C kills them" in job.stdout + job.stderr, running=False)
    assert job.wait() == 130
    assert job.survivors() == []
    assert not [lock for lock in locks if lock.exists()]


@pytest.mark.full
@pytest.mark.parametrize("victim", ["edt-launch", "agent"])
def test_nobody_outlives_a_killed_launcher(job: ElasticJob, victim: str) -> None:
    start(job, "endless", "--max-restarts", "0")
    assert job.process is not None
    if victim == "edt-launch":
        job.process.kill()
    else:
        job.agent().kill()
    assert job.wait() != 0
    assert job.survivors() == []
