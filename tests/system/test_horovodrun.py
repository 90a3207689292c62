"""Scripts of ours under Horovod's own elastic driver: nothing lost, no hang, the bits of one worker."""

import http.client
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from edt_launch.agent.system import processes
from edt_launch.core.errors import ExitCode
from edt_launch.launcher.hosts.checkpoints import newest
from edt_launch.service.jobs.states import State, Wanted
from harness import PATIENCE, PROGRAMS, SLOW, STEPS, TRACED, ElasticJob, Undisturbed
from horovodrun_job import HorovodrunJob
from pool_harness import Pool


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[HorovodrunJob]:
    job = HorovodrunJob(tmp_path / "a job's folder")
    yield job
    job.kill()


@pytest.mark.full
def test_a_change_before_rank_0_listens_counts(plain: HorovodrunJob, undisturbed: Undisturbed) -> None:
    """Horovod drops it: it comes when the workers have been started, and none of them has said so."""
    plain.allocate(1)
    plain.start(1, *SLOW)
    plain.until(lambda: plain.workers("localhost"))
    plain.allocate(2)
    plain.until_size(2)
    assert plain.end() == 0, plain.printed
    undisturbed.check(plain)


SSH = """#!/bin/sh
for last; do :; done
exec env -i PATH="$PATH" sh -c "$last"
"""
"""In place of ssh: the "other host" is this one, without the caller's environment."""


@pytest.mark.full
def test_strangers_can_neither_read_nor_write_the_rendezvous(
    plain: HorovodrunJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    plain.start(2, *SLOW)
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


@pytest.mark.full
def test_a_newcomer_gets_the_state_however_late_it_is(plain: HorovodrunJob, undisturbed: Undisturbed) -> None:
    """It takes longer than Gloo waits, and who has the state is to leave before it has come."""
    late = (PROGRAMS / "late.py", "127.0.0.1", 40, TRACED)
    plain.allocate(1)
    plain.start(1, *SLOW, program=late)
    plain.until_size(1)
    plain.allocate(1, 1)
    plain.until(lambda: plain.workers("127.0.0.1"))
    plain.allocate(0, 1)
    plain.until(lambda: {row["size"] for row in plain.trace()} >= {1, 2})
    assert plain.end() == 0, plain.printed
    undisturbed.check(plain)


@pytest.mark.full
def test_a_state_that_is_lost_ends_the_job(plain: HorovodrunJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDT_JOIN_TIMEOUT", "5")
    plain.allocate(1)
    plain.start(1, *SLOW, program=(PROGRAMS / "late.py", "127.0.0.1", 20, TRACED))
    plain.until_size(1)
    plain.allocate(1, 1)
    plain.until(lambda: plain.workers("127.0.0.1"))
    plain.allocate(0, 1)
    assert plain.wait() == 1, plain.printed
    assert "all workers that had the training's state left before this one got it" in plain.printed


@pytest.mark.full
def test_a_worker_killed_on_another_host_costs_a_step_and_the_host_until_its_cooldown(
    plain: HorovodrunJob, undisturbed: Undisturbed
) -> None:
    plain.allocate(1, 1)
    plain.start(2, *SLOW, options=("--blacklist-cooldown-range", 4, 8))
    plain.until_size(2)
    (victim,) = plain.workers("127.0.0.1")
    victim.kill()
    plain.until_size(1)
    plain.until_size(2)
    assert plain.end() == 0, plain.printed
    undisturbed.check(plain, repeated=1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_any_schedule(seed: int, plain: HorovodrunJob, undisturbed: Undisturbed) -> None:
    """On one host and on two, with short and long intervals, one with a kill."""
    numbers = random.Random(seed)

    def slots() -> tuple[int, int]:
        """On the two hosts; Horovod needs one host to stay, and here it is always the first."""
        return (numbers.randint(1, 4), 0) if seed % 2 else (numbers.randint(1, 2), numbers.randint(0, 2))

    first = slots()
    plain.allocate(*first)
    plain.start(sum(first), *SLOW)
    if numbers.random() < 0.7:
        plain.until_size(sum(first))
    for _ in range(4):
        plain.allocate(*slots())
        time.sleep(numbers.choice((0.3, 1.0, 2.5, 4.0)))
    last = (2, 1) if seed == 0 else (3, 0)
    plain.allocate(*last)
    plain.until_size(3)
    if seed == 0:
        plain.workers("127.0.0.1")[0].kill()
        plain.until_size(2)
    assert plain.end() == 0, plain.printed
    undisturbed.check(plain, repeated=1 if seed == 0 else 0)


# edt-launch --horovodrun


def test_edt_launch_starts_it_and_tells_what_happens(job: ElasticJob, undisturbed: Undisturbed) -> None:
    job.allocate(2, devices=" devices=0,1")
    job.start(TRACED, job.results, *SLOW, options=("--horovodrun", "--verbose"))
    job.until_size(2)
    job.allocate(1, devices=" devices=0")
    job.until(lambda: [event["slot"] for event in job.events("released")] == [1])
    job.until_size(1)
    assert job.end() == 0, job.stderr
    assert re.search(
        r"edt-launch: \S*/horovodrun -np 1 .*--host-discovery-script '\S*/edt-discover ", job.stderr
    )
    assert "[0]<stdout>:trained" in job.stdout
    assert "trained" in (job.out / "log" / "rank.0.log").read_text()
    assert [event["generation"] for event in job.events("following")][-1] == job.generation
    assert {event["device"] for event in job.events("started")} == {"0", "1"}
    assert job.events("progress")[-1]["step"] == job.steps()
    undisturbed.check(job)
    assert job.survivors() == []


@pytest.mark.full
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_nothing_of_it_outlives_edt_launch(number: signal.Signals, code: int, job: ElasticJob) -> None:
    up, script = job.folder / "up", job.folder / "waits.py"
    script.write_text(f"import pathlib, time\npathlib.Path({str(up)!r}).touch()\ntime.sleep(600)\n")
    job.allocate(1)
    job.start(script, options=("--horovodrun",))
    job.until(up.exists)
    job.remember()
    assert job.process is not None
    job.process.send_signal(number)
    assert job.process.wait() == code
    assert processes.wait_until_gone(job.family, PATIENCE) == set()


@pytest.mark.full
def test_a_paused_job_goes_on_from_its_newest_checkpoint(job: ElasticJob, undisturbed: Undisturbed) -> None:
    options = ("--horovodrun", "--checkpoint-interval", "0")
    job.allocate(2)
    job.start(TRACED, job.results, *SLOW, options=options)
    job.until(lambda: len(list((job.out / "checkpoint").glob("step-*"))) > 1)
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    assert job.process.wait() == ExitCode.LEFT
    assert f"all workers have been ended; start it again with --output-dir {job.out} to go on" in job.stderr
    assert job.survivors() == []
    job.allocate(1)
    checkpoint = newest(job.out / "checkpoint")
    job.start(TRACED, job.results, *SLOW, options=options)
    job.until(lambda: any(row["size"] == 1 for row in job.trace()))
    assert job.end() == 0, job.stderr
    undisturbed.check_final(job.results)
    again = [(row["epoch"], row["step"]) for row in job.trace() if row["size"] == 1]
    assert checkpoint is not None
    assert again[0] == divmod(int(checkpoint.name.removeprefix("step-")), STEPS)
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
    job.start(PROGRAMS / "horovod_elastic.py", job.results, "plain", options=("--horovodrun",))
    job.until((job.results / "began").exists)
    job.allocate(2)
    job.until((job.results / "size.2").exists)
    assert job.end() == 0, job.stderr
    assert "resets [2] replicas 2" in job.stdout


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
        pool.finish(first)
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
