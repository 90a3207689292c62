"""One job from start to end: resized, misled, told to leave, paused; then bereft of its workers, twice."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil
import pytest

from edt_launch.core.errors import ExitCode
from harness import SLOW, STEPS, TRACED, ElasticJob, Undisturbed, used
from programs.traced import SAMPLES

SECRET = "a value of the job's environment: 5ec2e7"
HEADER = "# edt allocation v1 generation=50\n"
BAD = {
    "empty": "",
    "half-written": HEADER + "localhost:1",
    "headless": "localhost:1\n",
    "unknown host": HEADER + "no-such-host.invalid:1\n",
    "too many": HEADER + "localhost:5\n",
    "duplicate devices": HEADER + "localhost:2 devices=1,1\n",
    "noise": "\x00\x01\x02",
}
linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")


@dataclass
class Life:
    """What was seen of a job."""

    job: ElasticJob
    exit_code: int = 0
    family: list[psutil.Process] = field(default_factory=list)
    """The processes of its first world of two, with what they were at that time."""
    parents: dict[int, int] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    """Of their command lines."""
    values: set[str] = field(default_factory=set)
    """Of a worker's environment."""
    newcomers_parents: set[int] = field(default_factory=set)

    def look(self) -> None:
        launcher = psutil.Process(self.job.process.pid)
        self.family = [launcher, *launcher.children(recursive=True)]
        self.parents = {process.pid: process.ppid() for process in self.family}
        self.words = [word for process in self.family for word in process.cmdline()]
        environment = self.job.worker(0).environ()
        environment.pop("_", None)  # a shell's: the path of the command that it has started
        self.values = set(environment.values())


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """After resizes, files that make no sense and a notice it is paused."""
    job = ElasticJob(tmp_path_factory.mktemp("life") / "a job's folder")
    life = Life(job)
    job.allocate(2, devices=" devices=5,3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_SECRET", SECRET)
        # So that the only checkpoint is the one that the pause makes.
        job.start(TRACED, job.results, *SLOW, options=("--checkpoint-interval", "100000"))
    try:
        job.until_steps(2)
        life.look()
        for count, text in enumerate(BAD.values(), start=1):
            job.write_allocation(text)
            job.until(lambda count=count: len(job.events("allocation_rejected")) >= count)
        job.allocation.unlink()
        job.until(lambda: len(job.events("allocation_rejected")) > len(BAD))
        job.until_more_steps(3)
        job.generation = 60
        job.allocate(4, devices=" devices=5,3,7,8")
        job.until_size(4)
        life.newcomers_parents = {job.worker(rank).ppid() for rank in (2, 3)}
        job.until_more_steps(1)
        job.allocate(3, devices=" devices=5,3,7")
        job.until_size(3)
        job.until_more_steps(1)
        os.kill(job.worker(2).pid, signal.SIGTERM)
        job.until_size(2)
        job.until_more_steps(1)
        job.allocate(1, devices=" devices=5")
        job.until_size(1)
        job.allocate(2, devices=" devices=5,9")
        job.until_size(2)
        job.until_more_steps(1)
        assert job.process is not None
        job.process.send_signal(signal.SIGUSR1)
        life.exit_code = job.wait()
        yield life
    finally:
        job.kill()


def test_a_pause_saves_the_state_and_tells_how_to_go_on(paused: Life) -> None:
    assert paused.exit_code == ExitCode.LEFT
    assert "start it again with --output-dir" in paused.job.stderr
    assert {event["device"] for event in paused.job.events("released")} == {"3", "5", "7", "8", "9"}
    assert not paused.job.events("failed", "restarting")


def test_resizes_use_every_sample_once(paused: Life) -> None:
    assert [world["size"] for world in paused.job.events("world")] == [2, 4, 3, 2, 1, 2]
    (saved,) = paused.job.events("checkpointed")
    epochs, steps = divmod(saved["step"], STEPS)
    seen = used(paused.job.trace())
    assert set(seen.values()) == {1}
    whole = Counter(epoch for epoch, _ in seen)
    assert all(whole[epoch] == SAMPLES for epoch in range(epochs))
    assert (whole[epochs] > 0) == (steps > 0)


def test_a_resize_shows_the_user_neither_a_traceback_nor_the_last_words_of_cpp(paused: Life) -> None:
    shown = paused.job.stdout + paused.job.stderr
    for noise in ("Traceback", "terminate called", "uncaught exception", "Aborted", "Terminated", "Error"):
        assert noise not in shown, shown
    for log in (paused.job.out / "log").glob("rank.*"):  # edt-launch does not show that
        assert "uncaught exception" not in log.read_text()


def test_a_file_that_makes_no_sense_is_reported_once_and_changes_nothing(paused: Life) -> None:
    assert len(paused.job.events("allocation_rejected")) == len(BAD) + 1
    assert [event["generation"] for event in paused.job.events("following")] == [1, 61, 62, 63, 64]


def test_workers_keep_their_devices_when_the_list_grows_and_loses_its_tail(paused: Life) -> None:
    used_devices = {(row["rank"], row["device"]) for row in paused.job.trace()}
    assert used_devices == {(0, "5"), (1, "3"), (2, "7"), (3, "8"), (1, "9")}


def test_a_worker_that_gets_sigterm_leaves_after_its_step(paused: Life) -> None:
    leaving = [event for event in paused.job.events("leaving") if event["reason"] == "SIGTERM"]
    assert [event["rank"] for event in leaving] == [2]
    assert "rank 2 on localhost has been told to leave: SIGTERM" in paused.job.stderr


@linux
def test_workers_are_forked_from_a_process_that_has_imported_what_they_need(paused: Life) -> None:
    (server,) = paused.job.events("warm_server")
    assert server["refused"] is None
    assert {"torch", "horovod", "edt_hvd"} <= set(server["imports"])
    assert paused.newcomers_parents == {server["pid"]}
    assert all(event["private"] < server["private"] for event in paused.job.events("standby"))


@linux
def test_a_local_job_of_two_workers_is_five_processes_that_keep_its_variables_to_themselves(
    paused: Life,
) -> None:
    launcher, agent = paused.family[0].pid, paused.family[1].pid
    (server,) = {event["pid"] for event in paused.job.events("warm_server")}
    workers = {event["pid"] for event in paused.job.events("ready")[:2]}
    assert paused.parents == {
        launcher: os.getpid(),
        agent: launcher,
        server: agent,
        **dict.fromkeys(workers, server),
    }
    assert SECRET in paused.values
    # What all users of the machine can read: no value of theirs, ours, or the worker's token.
    telling = {value for value in paused.values if len(value) > 20 and value not in sys.path}
    assert [word for word in paused.words if any(value in word and value != word for value in telling)] == []
    assert SECRET not in " ".join(paused.words)


@pytest.fixture(scope="module")
def bereft(paused: Life) -> Life:
    """It goes on with other devices, loses its coordinator, then all workers, and trains to the end."""
    job = paused.job
    job.allocate(2, devices=" devices=1,2")
    job.start(TRACED, job.results, *SLOW, options=("--checkpoint-interval", "0.2"))
    job.until(lambda: job.events("restored"))
    job.until_more_steps(2)
    job.worker(0).kill()
    job.until(lambda: job.worlds_since_start()[-2:] == [1, 2])
    written = len(job.events("checkpointed"))
    job.until(lambda: len(job.events("checkpointed")) >= written + 2)
    job.remember()
    for rank in (0, 1):
        job.worker(rank).kill()
    job.until(lambda: len(job.events("restored")) == 2)
    job.until_more_steps(1)
    life = Life(job, exit_code=job.end())
    assert life.exit_code == 0, job.stdout + job.stderr
    return life


def test_a_killed_worker_costs_its_slot_for_a_while_and_nothing_else(bereft: Life) -> None:
    first = bereft.job.events("failed")[0]
    assert (first["rank"], first["signal"]) == (0, "SIGKILL")


def test_what_loses_all_workers_restarts_from_the_newest_checkpoint(bereft: Life) -> None:
    (restarting,) = bereft.job.events("restarting")
    assert (restarting["restart"], restarting["of"]) == (1, 3)
    paused_at, restored = bereft.job.events("restored")
    written = [event["step"] for event in bereft.job.events("checkpointed")]
    assert paused_at["step"] == written[0]
    assert restored["step"] in written[1:]
    workers = [event["worker"] for event in bereft.job.events("started")[-4:]]
    assert len(set(workers)) == len(workers)


def test_after_all_that_the_weights_are_those_of_one_process(bereft: Life, undisturbed: Undisturbed) -> None:
    epochs = undisturbed.check_final(bereft.job.results)
    steps = {(row["epoch"], row["step"]) for row in bereft.job.trace()}
    assert steps == {(epoch, step) for epoch in range(epochs) for step in range(STEPS)}
    assert "trained" in bereft.job.stdout
    assert "standby: " in bereft.job.stderr


def test_nothing_outlives_the_job(bereft: Life) -> None:
    assert bereft.job.survivors() == []
