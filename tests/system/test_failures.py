"""What goes wrong is told last, and leaves nothing behind."""

import re
import signal
from collections import Counter, defaultdict
from pathlib import Path

import psutil
import pytest

from harness import PROGRAMS, TRACED, ElasticJob
from programs.traced import SAMPLES
from tiers import full

FAILING = PROGRAMS / "failing.py"


def last_lines(job: ElasticJob, count: int = 40) -> str:
    return "\n".join(job.stderr.rstrip().splitlines()[-count:])


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
    assert re.search(r"localhost", told)
    assert re.search(rf"exit(ed)?( with)?( code)? {code}", told), told
    log = re.search(r"\S.*/log/rank\.\d+\.log", told)
    assert log, told
    assert words in Path(log.group().split(": ")[-1].strip()).read_text()
    assert job.survivors() == []


def test_a_line_of_ten_megabytes_hides_no_failure(job: ElasticJob) -> None:
    job.allocate(1)
    job.start(FAILING, "chatters", job.results)
    assert job.end() == 1
    assert re.search(r"first failure: rank 0 on \S+, exit code 3", last_lines(job)), last_lines(job)
    (ended,) = job.events("ended")
    assert "exit code 3" in ended["message"]
    assert len(ended["message"]) < 10_000
    assert job.survivors() == []


@pytest.mark.full
@pytest.mark.parametrize("how", ["raise", "exit"])
def test_the_others_go_on_without_a_worker_that_failed(job: ElasticJob, how: str) -> None:
    job.allocate(3)
    job.start(FAILING, how, job.results)
    job.until(lambda: job.events("failed"))
    (failed, *_) = job.events("failed")
    assert (failed["rank"], failed["exit_code"]) == (1, 1 if how == "raise" else 7)
    job.until_size(2)
    assert job.process is not None
    job.process.send_signal(signal.SIGTERM)
    assert job.end() == 143
    assert job.survivors() == []


@pytest.mark.parametrize("rank", [0, full(2)])
def test_a_killed_worker_costs_its_slot_for_a_while_and_nothing_else(job: ElasticJob, rank: int) -> None:
    job.allocate(3)
    job.start(TRACED, job.results, "--epochs", 40, "--delay", 0.3)
    job.until_steps(5)
    job.remember()
    job.worker(rank).send_signal(signal.SIGKILL)
    job.until_size(2)
    job.until_size(3)
    assert job.end() == 0
    (failed,) = job.events("failed")
    assert (failed["rank"], failed["signal"]) == (rank, "SIGKILL")
    assert job.survivors() == []
    # A step whose reduction only some had seen may be repeated; nothing else is, and nothing is missing.
    steps = defaultdict(Counter)
    for row in job.trace():
        steps[row["epoch"], row["step"]].update(row["samples"])
    incomplete = [key for key, seen in steps.items() if sum(seen.values()) < min(32, SAMPLES - 32 * key[1])]
    assert len(incomplete) <= 1, "only the victim's own last step may be missing in the victim's log"
    assert len(steps) == 40 * 7


@pytest.mark.parametrize("number, code", [full(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("how", ["none", full("stuck")])
def test_a_signal_ends_the_whole_tree(job: ElasticJob, number: signal.Signals, code: int, how: str) -> None:
    job.allocate(2)
    job.start(FAILING, how, job.results)
    job.until((job.results / "pid.1").exists)
    assert job.process is not None
    job.process.send_signal(number)
    assert job.end() == code
    assert job.survivors() == []


@pytest.mark.full
def test_a_worker_that_quits_is_lost_and_told(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(FAILING, "quits", job.results)
    assert job.end() == 0, job.stderr
    failed = job.events("failed")[0]
    assert failed["reason"] == "rank 1 on localhost ended with exit code 0 in the middle of training"
    assert failed["reason"] in job.stderr
    assert [event["size"] for event in job.events("world")][:2] == [2, 1]


@pytest.mark.full
def test_a_coordinator_that_is_lost_after_others_have_returned_is_no_success(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(FAILING, "evaluates", job.results, options=("--max-restarts", "0"))
    job.until((job.results / "evaluates").exists)
    job.until(lambda: len(job.events("released")) == 1)
    job.worker(0).kill()
    assert job.end() == 1
    assert "rank 0 on localhost failed before its training function returned" in job.stderr
    assert "is tried again" not in job.stderr
    assert job.survivors() == []


def test_a_second_ctrl_c_leaves_no_shared_memory(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(FAILING, "stuck", job.results)
    job.until((job.results / "pid.1").exists)
    job.remember()
    assert job.process is not None
    names = [path.read_text().strip("/") for path in job.results.glob("lock.*")]
    locks = [Path(f"/dev/shm/sem.{name}") for name in names]
    assert len([lock for lock in locks if lock.exists()]) == 2
    for _ in range(2):
        job.process.send_signal(signal.SIGINT)
        job.until(lambda: "Ctrl-C kills them" in job.stdout + job.stderr, running=False)
    assert job.end() == 130
    assert job.survivors() == []
    assert not [lock for lock in locks if lock.exists()]


@pytest.mark.parametrize("victim", ["edt-launch", full("agent")])
def test_nobody_outlives_a_killed_launcher(job: ElasticJob, victim: str) -> None:
    job.allocate(2)
    job.start(FAILING, "none", job.results, options=("--max-restarts", "0"))
    job.until((job.results / "pid.1").exists)
    assert job.process is not None
    job.remember()
    if victim == "edt-launch":
        job.process.kill()
    else:
        job.agent().kill()
    assert job.end() != 0
    psutil.wait_procs(job.family, timeout=30)
    assert job.survivors() == []
