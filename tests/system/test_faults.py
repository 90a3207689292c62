"""Jobs to which the worst happens train on to the end, and train what they would have trained otherwise."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_hvd.debug.faults import FILLING
from fault_rows import fault_script
from harness import STEPS, TRACED, ElasticJob, Undisturbed
from tiers import full


@pytest.fixture
def script(job: ElasticJob, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fault script of a job, still to be written."""
    path = job.folder / "faults"
    monkeypatch.setenv("EDT_FAULTS", str(path))
    monkeypatch.setenv("EDT_FAULTS_ALLOCATION", str(job.allocation))
    return path


def disturb(job: ElasticJob, script: Path, slots: int, rows: list[str], *options: str) -> None:
    """Run a job, which goes on until it is to end, until every row of the script has happened."""
    script.write_text(fault_script(*rows))
    job.allocate(slots)
    job.start(TRACED, job.results, "--delay", 0.1, options=options)
    job.until(lambda: len(list(job.folder.glob("faults.*.done"))) == len(rows))


def check(job: ElasticJob, undisturbed: Undisturbed) -> None:
    """Let it end: with the weights of the undisturbed training, and nothing of it is left."""
    assert job.end() == 0, job.stdout + job.stderr
    undisturbed.check_final(job.results)
    assert job.survivors() == []
    pids = {str(process.pid) for process in job.family}
    assert [path for path in Path("/dev/shm").iterdir() if pids & set(path.name.split("_"))] == []


DEATHS = {
    "one by one": [
        '{ step = 5, action = "kill", rank = 3, point = "micro-batch" }',
        '{ step = 10, action = "kill", rank = 0, point = "after-reduction" }',
        '{ step = 15, action = "kill", rank = 1, point = "after-commit" }',
    ],
    "all at once": [
        '{ step = 5, action = "kill", rank = 3 }',
        '{ step = 5, action = "kill", rank = 2 }',
        '{ step = 5, action = "kill", rank = 1 }',
        '{ step = 12, action = "drop", rank = 0 }',
    ],
    "drop": [
        '{ step = 5, action = "drop", rank = 1 }',
        '{ step = 10, action = "drop", rank = 0, point = "after-commit" }',
        '{ step = 15, action = "drop", rank = 2, point = "loader" }',
        '{ step = 20, action = "slow", rank = 1, seconds = 0.2, steps = 3 }',
    ],
    "flapping": [
        '{ step = 5, action = "allocate", slots = [1, 4, 2, 3] }',
        '{ step = 25, action = "allocate", slots = [1, 3], point = "micro-batch" }',
        '{ step = 25, action = "kill", rank = 1 }',
    ],
    "the coordinator in a resize": [
        '{ step = 5, action = "drop", rank = 1 }',
        '{ resize = 1, action = "kill", rank = 0, point = "waiting" }',
        '{ resize = 1, action = "kill", rank = 0, point = "rendezvous" }',
        '{ resize = 2, action = "kill", rank = 0, point = "transfer" }',
    ],
    "newcomers in a resize": [
        '{ step = 5, action = "allocate", slots = [1] }',
        '{ step = 10, action = "allocate", slots = [4] }',
        '{ resize = 2, action = "kill", rank = "newcomer", point = "waiting" }',
        '{ resize = 2, action = "kill", rank = "newcomer", point = "rendezvous" }',
        '{ resize = 3, action = "kill", rank = "newcomer", point = "transfer" }',
    ],
}
QUICK = "newcomers in a resize"


@pytest.mark.parametrize("name", [name if name == QUICK else full(name) for name in DEATHS])
def test_deaths(job: ElasticJob, script: Path, undisturbed: Undisturbed, name: str) -> None:
    disturb(job, script, 4, DEATHS[name])
    check(job, undisturbed)


@pytest.mark.full
def test_the_death_of_the_coordinator_in_the_last_step(
    job: ElasticJob, script: Path, undisturbed: Undisturbed
) -> None:
    death = f'{{ step = {2 * STEPS}, action = "kill", rank = 0, point = "after-commit" }}'
    script.write_text(fault_script(death))
    job.allocate(2)
    job.start(TRACED, job.results, "--epochs", 2, "--delay", 0.1)
    check(job, undisturbed)
    assert job.events("failed")


CHECKPOINTS = ("--checkpoint-interval", "0.2")


@pytest.fixture
def small_disk(job: ElasticJob) -> Iterator[None]:
    """The job's checkpoints lie on a disk of their own, with room for some of them."""
    folder = job.out / "checkpoint"
    folder.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    yield
    job.kill()
    subprocess.run(["umount", folder], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk(job: ElasticJob, script: Path, undisturbed: Undisturbed) -> None:
    disturb(job, script, 2, ['{ checkpoint = 1, action = "fill-disk" }'], *CHECKPOINTS)
    job.until(lambda: job.events("checkpoint_failed"))
    (job.out / "checkpoint" / FILLING).unlink()
    job.until(lambda: any(event.get("again") for event in job.events("checkpointed")))
    check(job, undisturbed)
    assert "No space left on device" in job.events("checkpoint_failed")[0]["reason"]
