"""Scripts of ours under Horovod's own elastic driver: nothing lost, no hang, the bits of one worker."""

import http.client
import math
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from edt_launch.agent import processes
from edt_launch.core.errors import ExitCode
from edt_launch.launcher.checkpoints import newest
from edt_launch.service.states import State, Wanted
from harness import PROGRAMS, TRACED, ElasticJob
from horovodrun_job import MAX_NP, HorovodrunJob, check, train_alone
from pool_harness import Pool
from programs.traced import BATCH, SAMPLES
from tiers import full

EPOCHS = 30
DELAY = 0.25
"""Seconds a step, so that a training lasts for 50 seconds unless it is to hurry: no change comes too late."""

STEPS = math.ceil(SAMPLES / BATCH)
"""Of an epoch."""

ENDLESS = 100_000
"""Epochs of a job that does not end by itself."""

INTERVALS = (0.3, 1.0, 2.5, 4.0)
"""Seconds between two changes."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return train_alone(tmp_path_factory.mktemp("alone"), EPOCHS)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[HorovodrunJob]:
    job = HorovodrunJob(tmp_path / "a job's folder")
    yield job
    job.kill()


def test_a_job_grows_and_shrinks(plain: HorovodrunJob, undisturbed: dict[str, Any]) -> None:
    plain.allocate(2)
    plain.start(2, "--epochs", EPOCHS, "--delay", DELAY)
    for size in (2, 4, 1, 3):
        plain.allocate(size)
        plain.until_size(size)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed)
    assert "Traceback" not in plain.printed


@pytest.mark.full
def test_a_change_before_rank_0_listens_counts(plain: HorovodrunJob, undisturbed: dict[str, Any]) -> None:
    """Horovod drops it: it comes when the workers have been started, and none of them has said so."""
    plain.allocate(1)
    plain.start(1, "--epochs", EPOCHS, "--delay", DELAY)
    plain.until(lambda: plain.workers("localhost"))
    plain.allocate(2)
    plain.until_size(2)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed)


@pytest.mark.full
def test_a_worker_killed_on_another_host_costs_a_step(
    plain: HorovodrunJob, undisturbed: dict[str, Any]
) -> None:
    plain.allocate(2, 1)
    plain.start(3, "--epochs", EPOCHS, "--delay", DELAY)
    plain.until_size(3)
    (victim,) = plain.workers("127.0.0.1")
    victim.kill()
    plain.until_size(2)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed, repeated=1)


SSH = """#!/bin/sh
for last; do :; done
exec env -i PATH="$PATH" sh -c "$last"
"""
"""In place of ssh: the "other host" is this one, without the caller's environment."""


@pytest.mark.full
def test_strangers_can_neither_read_nor_write_the_rendezvous(
    plain: HorovodrunJob, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens on the interface alone, and its token is in no command line, of ssh neither."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOROVOD_RENDEZVOUS_TOKEN", "of another job, in which this one was started")
    plain.hosts = ("localhost", "192.0.2.1")
    plain.allocate(1, 1)
    plain.start(2, "--epochs", EPOCHS, "--delay", DELAY)
    plain.until_size(2)
    here, elsewhere = (plain.workers(host)[0].environ() for host in plain.hosts)
    token, port = (here[f"HOROVOD_{name}"] for name in ("RENDEZVOUS_TOKEN", "GLOO_RENDEZVOUS_PORT"))
    assert elsewhere["HOROVOD_RENDEZVOUS_TOKEN"] == token
    assert token not in plain.printed
    assert [one for one in psutil.process_iter() if token in str(processes.command_line(one))] == []
    listening = [at.laddr for at in psutil.net_connections("tcp") if at.status == psutil.CONN_LISTEN]
    assert [at.ip for at in listening if at.port == int(port)] == ["127.0.0.1"]
    for method, path in (("GET", "/rank_and_size/localhost:0"), ("PUT", "/worker_addresses/localhost:0")):
        for headers in ({}, {"Authorization": "Bearer guessed"}):
            connection = http.client.HTTPConnection("127.0.0.1", int(port))
            connection.request(method, path, "gASVAAAA", headers)
            assert connection.getresponse().status == http.client.FORBIDDEN
            connection.close()
    plain.allocate(2, 1)
    plain.until_size(3)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed)


@pytest.mark.full
def test_a_newcomer_gets_the_state_however_late_it_is(
    plain: HorovodrunJob, undisturbed: dict[str, Any]
) -> None:
    """It takes longer than Gloo waits, and who has the state is to leave before it has come."""
    late = (PROGRAMS / "late.py", "127.0.0.1", 40, TRACED)
    plain.allocate(1)
    plain.start(1, "--epochs", EPOCHS, "--delay", DELAY, program=late)
    plain.until_size(1)
    plain.allocate(1, 1)
    plain.until(lambda: plain.workers("127.0.0.1"))
    plain.allocate(0, 1)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed)
    assert {row["size"] for row in plain.trace()} >= {1, 2}


@pytest.mark.full
def test_a_state_that_is_lost_ends_the_job(plain: HorovodrunJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDT_JOIN_TIMEOUT", "5")
    plain.allocate(1)
    late = (PROGRAMS / "late.py", "127.0.0.1", 20, TRACED)
    plain.start(1, "--epochs", ENDLESS, "--delay", DELAY, program=late)
    plain.until_size(1)
    plain.allocate(1, 1)
    plain.until(lambda: plain.workers("127.0.0.1"))
    plain.allocate(0, 1)
    assert plain.process is not None
    assert plain.process.wait() == 1, plain.printed
    assert "all workers that had the training's state left before this one got it" in plain.printed


@pytest.mark.full
def test_a_host_is_used_again_after_a_cooldown(plain: HorovodrunJob, undisturbed: dict[str, Any]) -> None:
    plain.allocate(2, 1)
    plain.start(3, "--epochs", EPOCHS, "--delay", DELAY, options=("--blacklist-cooldown-range", 4, 8))
    plain.until_size(3)
    (victim,) = plain.workers("127.0.0.1")
    victim.kill()
    plain.until_size(2)
    plain.until_size(3)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed, repeated=1)


@pytest.mark.full
def test_a_worker_killed_on_the_last_host_ends_the_job(plain: HorovodrunJob) -> None:
    """As docs/horovodrun.md says, with Horovod's message."""
    plain.allocate(2)
    plain.start(2, "--epochs", ENDLESS, "--delay", DELAY)
    plain.until_size(2)
    plain.workers("localhost")[0].kill()
    assert plain.process is not None
    assert plain.process.wait() == 1, plain.printed
    assert "blacklisted slots count == 2 -> stop running" in plain.printed
    assert plain.workers("localhost") == []


@pytest.mark.full
def test_hosts_that_are_all_replaced_end_the_job(plain: HorovodrunJob) -> None:
    """As docs/horovodrun.md says, with Horovod's message."""
    plain.allocate(1)
    plain.start(1, "--epochs", ENDLESS, "--delay", DELAY)
    plain.until_size(1)
    plain.allocate(0, 1)
    assert plain.process is not None
    assert plain.process.wait() in (0, 1), plain.printed  # Horovod's driver may have forgotten the worker
    assert "trained" not in plain.printed
    assert "No hosts from previous set remaining, unable to broadcast state." in plain.printed


@pytest.mark.full
def test_a_newcomer_that_fails_before_it_joins_costs_its_host(
    plain: HorovodrunJob, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDT_JOIN_TIMEOUT", "5")
    plain.allocate(1)
    plain.start(
        1, "--epochs", EPOCHS, "--delay", DELAY, program=(PROGRAMS / "absent.py", "127.0.0.1", TRACED)
    )
    plain.until_size(1)
    plain.allocate(1, 1)
    plain.until(lambda: "Process 1 exit with status code 1." in plain.printed)
    done = len(plain.trace())
    plain.until(lambda: len(plain.trace()) > done + 20)  # meanwhile the driver looks at the hosts again
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed)
    assert {row["size"] for row in plain.trace()} == {1}
    assert plain.printed.count("exit with status code") == 1


@pytest.mark.full
@pytest.mark.parametrize("at_start", [True, False])
def test_too_few_slots_for_too_long_end_the_job(at_start: bool, plain: HorovodrunJob) -> None:
    plain.allocate(1 if at_start else 2)
    limits = ("--min-np", 1 if at_start else 2, "--elastic-timeout", 5)
    plain.start(2, "--epochs", ENDLESS, "--delay", DELAY, options=limits)
    if not at_start:
        plain.until_size(2)
        plain.allocate(1)
    assert plain.process is not None
    assert plain.process.wait() == 1, plain.printed
    assert "Please check that you have enough resources to run at least 2 Horovod processes." in plain.printed
    assert plain.workers("localhost") == []
    assert bool(plain.trace()) is not at_start


@pytest.mark.full
@pytest.mark.parametrize(
    "spoiled",
    [None, "", "# edt allocation v1 generation=9\nlocalhost:3"],
    ids=["missing", "empty", "half written"],
)
def test_an_unusable_allocation_file_changes_nothing(
    spoiled: str | None, plain: HorovodrunJob, undisturbed: dict[str, Any]
) -> None:
    plain.allocate(1)
    plain.start(1, "--epochs", EPOCHS, "--delay", DELAY)
    plain.until_size(1)
    if spoiled is None:
        plain.allocation.unlink()
    else:
        plain.allocation.write_text(spoiled)
    plain.until(lambda: plain.printed.count("Failed to execute discovery script") > 1)
    done = len(plain.trace())
    plain.until(lambda: len(plain.trace()) > done)
    assert plain.size() == 1
    plain.allocate(2)
    plain.until_size(2)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed)
    assert {row["size"] for row in plain.trace()} == {1, 2}


def test_a_job_without_an_allocation_file_does_not_start(plain: HorovodrunJob) -> None:
    plain.start(1)
    assert plain.process is not None
    assert plain.process.wait() == 1, plain.printed
    assert f"edt-discover: {plain.allocation}: No such file or directory" in plain.printed
    assert plain.trace() == []


def check_going_on(
    job: HorovodrunJob | ElasticJob,
    checkpoint: Path | None,
    undisturbed: dict[str, Any],
    start: Callable[[], object],
) -> None:
    """Started again with one worker instead of two, a job goes on from a checkpoint to the same end."""
    assert checkpoint is not None
    done = {(row["epoch"], row["step"]) for row in job.trace()}
    start()
    assert job.end() == 0
    again = [(row["epoch"], row["step"]) for row in job.trace() if row["size"] == 1]
    assert again[0] == divmod(int(checkpoint.name.removeprefix("step-")), STEPS)
    check(job.trace(), job.results, EPOCHS, undisturbed, repeated=len(done & {*again}))


@pytest.mark.full
def test_a_job_that_has_ended_goes_on_from_its_newest_checkpoint(
    plain: HorovodrunJob,
    undisturbed: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(tmp_path / "checkpoints"))
    monkeypatch.setenv("EDT_CHECKPOINT_INTERVAL", "0")
    plain.allocate(2)
    plain.start(2, "--epochs", EPOCHS, "--delay", DELAY)
    plain.until(lambda: len(list((tmp_path / "checkpoints").glob("step-*"))) > 1)
    plain.workers("localhost")[0].kill()
    assert plain.process is not None
    assert plain.process.wait() == 1, plain.printed
    plain.allocate(1)
    check_going_on(
        plain, newest(tmp_path / "checkpoints"), undisturbed, lambda: plain.start(1, "--epochs", EPOCHS)
    )


def schedule(seed: int) -> list[tuple[int, int]]:
    """Slots on the two hosts; Horovod needs one host to stay, and here it is always the first."""
    numbers = random.Random(seed)
    hosts = [(numbers.randint(1, 4), 0) if seed % 2 else (numbers.randint(1, 2), numbers.randint(0, 2))]
    while len(hosts) < 6:
        hosts.append(
            (numbers.randint(1, 4), 0) if seed % 2 else (numbers.randint(1, 2), numbers.randint(0, 2))
        )
    return hosts


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_any_schedule(seed: int, plain: HorovodrunJob, undisturbed: dict[str, Any]) -> None:
    """On one host and on two, with short and long intervals, every fourth with a kill."""
    numbers = random.Random(seed)
    first, *rest = schedule(seed)
    plain.allocate(*first)
    plain.start(sum(first), "--epochs", EPOCHS, "--delay", DELAY)
    trains_first = numbers.random() < 0.7
    if trains_first:
        plain.until_size(sum(first))
    else:  # changes come while the workers start
        plain.until(lambda: len(plain.workers("localhost")) == first[0])
    for slots in rest:
        plain.allocate(*slots)
        time.sleep(numbers.choice(INTERVALS))
    if seed % 4 == 0:
        plain.allocate(2, 2)
        plain.until(lambda: plain.size() == MAX_NP)
        numbers.choice(plain.workers("127.0.0.1")).kill()
        plain.until_size(2)
    assert plain.end() == 0, plain.printed
    plain.check(EPOCHS, undisturbed, repeated=1 if seed % 4 == 0 else 0)
    # Many changes in a row become one, on a busy machine perhaps none, where the last is to the first size.
    may_stay = not trains_first or sum(rest[-1]) == sum(first)
    assert len({row["size"] for row in plain.trace()}) > 1 or may_stay


# edt-launch --horovodrun


def test_edt_launch_starts_it_and_tells_what_happens(job: ElasticJob, undisturbed: dict[str, Any]) -> None:
    job.allocate(2, devices=" devices=0,1")
    options = ("--horovodrun", "--verbose")
    job.start(TRACED, job.results, "--epochs", EPOCHS, "--delay", DELAY, options=options)
    for size in (2, 3, 1):
        job.allocate(size, devices=f" devices={','.join(map(str, range(size)))}")
        job.until_size(size)
    job.until(lambda: {event["slot"] for event in job.events("released")} == {1, 2})
    assert job.end() == 0, job.stderr
    assert re.search(
        r"edt-launch: \S*/horovodrun -np 1 .*--host-discovery-script '\S*/edt-discover ", job.stderr
    )
    assert "[0]<stdout>:trained" in job.stdout
    assert "trained" in (job.out / "log" / "rank.0.log").read_text()
    assert [event["generation"] for event in job.events("following")][-1] == job.generation
    assert {event["device"] for event in job.events("started")} == {"0", "1", "2"}
    assert job.events("progress")[-1]["step"] == len(undisturbed["losses"])
    assert job.survivors() == []


@pytest.mark.parametrize(
    "number, code", [full(signal.SIGTERM, 143), full(signal.SIGUSR1, 5), (signal.SIGKILL, -9)]
)
def test_nothing_of_it_outlives_edt_launch(number: signal.Signals, code: int, job: ElasticJob) -> None:
    job.allocate(2)
    job.start(TRACED, job.results, "--delay", DELAY, options=("--horovodrun",))
    job.until_size(2)
    job.remember()
    assert job.process is not None
    job.process.send_signal(number)
    assert job.process.wait() == code
    left = processes.wait_until_gone(job.family, 20)
    assert left == set()


@pytest.mark.full
def test_a_paused_job_goes_on_from_its_newest_checkpoint(
    job: ElasticJob, undisturbed: dict[str, Any]
) -> None:
    options = ("--horovodrun", "--checkpoint-interval", "0")
    start = partial(job.start, TRACED, job.results, "--epochs", EPOCHS, "--delay", DELAY, options=options)
    job.allocate(2)
    start()
    job.until(lambda: len(list((job.out / "checkpoint").glob("step-*"))) > 1)
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    assert job.process.wait() == ExitCode.LEFT
    assert f"all workers have been ended; start it again with --output-dir {job.out} to go on" in job.stderr
    assert job.survivors() == []
    job.allocate(1)
    check_going_on(job, newest(job.out / "checkpoint"), undisturbed, start)
    (restored,) = job.events("restored")
    assert restored["step"] > 0


LEAVES_A_CHILD = """
import subprocess
import edt_hvd
edt_hvd.init()
subprocess.Popen(["sh", "-c", "while :; do echo still there; sleep 1; done"], start_new_session=True)
"""


@pytest.mark.full
def test_what_workers_leave_running_keeps_no_job_from_ending(job: ElasticJob) -> None:
    script = job.folder / "leaves.py"
    script.write_text(LEAVES_A_CHILD)
    job.start(script, options=("--horovodrun", "-H", "localhost:1"))
    job.until(lambda: "still there" in job.stdout)
    job.remember()
    assert job.end() == 0, job.stderr
    assert job.survivors() == []


@pytest.mark.full
def test_a_script_for_plain_horovod_is_resized(job: ElasticJob) -> None:
    """hvd.elastic.run, Horovod's state and sampler: nothing of ours is in the workers."""
    job.allocate(1)
    job.start(PROGRAMS / "plain_horovod.py", job.results, options=("--horovodrun",))
    job.until((job.results / "began").exists)
    job.allocate(2)
    assert job.end() == 0, job.stderr
    found = re.findall(r"rank (\d) of (\d) after (\d+) epochs", job.stdout)
    assert sorted(found) == [("0", "2", "40"), ("1", "2", "40")]


# edt serve --horovodrun


@pytest.mark.full
def test_the_service_runs_jobs_that_way(tmp_path: Path) -> None:
    """Two users share four slots; no slot is handed on before its worker is gone."""
    pool = Pool(tmp_path / "pool", horovodrun=True)
    pool.start()
    try:
        first = pool.submit("ann", 1, 4, "--steps", 100_000)
        pool.until_training(first)
        second = pool.submit("bob", 1, 4, "--steps", 100_000)
        pool.until_sizes(2, 2)
        pool.until_training(first, second)
        (pool.out / f"finish.{first}").touch()
        pool.until(lambda: pool.job(first).state is State.SUCCEEDED)
        pool.until_sizes(0, 4)
        pool.until_training(second)
        pool.wish(second, Wanted.PAUSE)
        pool.until(lambda: pool.job(second).state is State.PAUSED)
        done = len(pool.steps(second))
        pool.wish(second, Wanted.RUN)
        pool.until(lambda: len(pool.steps(second)) > done)
        pool.wish(second, Wanted.STOP)
        pool.until(lambda: pool.job(second).state is State.STOPPED)
        assert pool.overlaps() == []
        steps = pool.steps(first)
        assert steps == list(range(1, len(steps) + 1)), "a step was lost or repeated"
    finally:
        print(pool.report())
        pool.close()
