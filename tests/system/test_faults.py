"""Jobs to which the worst happens train on to the end, and train what they would have trained otherwise."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import history
import pytest

from edt_hvd.observers.faults import FILLING
from harness import ElasticJob
from tiers import full

TRAIN = Path(history.__file__).with_name("train.py")
SAMPLES, STEPS = 100, 5
"""In an epoch of train.py."""

Digests = Callable[[int], str]
"""The digest of the undisturbed training of so many epochs."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Digests:
    """The digest of what one process trains in so many epochs."""

    @cache
    def undisturbed(epochs: int) -> str:
        folder = tmp_path_factory.mktemp("undisturbed")
        calm = {name: value for name, value in os.environ.items() if not name.startswith("EDT_FAULTS")}
        subprocess.run([sys.executable, TRAIN, folder, "--epochs", str(epochs)], check=True, env=calm)
        assert history.mistakes(history.read(folder), SAMPLES, epochs) == []
        found: str = final(folder)["digest"]
        return found

    return undisturbed


def final(folder: Path) -> dict[str, Any]:
    """What train.py has written at its end."""
    found: dict[str, Any] = json.loads((folder / "final.json").read_text())
    return found


@pytest.fixture
def script(job: ElasticJob, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fault script of a job, still to be written."""
    path = job.folder / "faults"
    monkeypatch.setenv("EDT_FAULTS", str(path))
    monkeypatch.setenv("EDT_FAULTS_ALLOCATION", str(job.allocation))
    return path


def disturb(job: ElasticJob, script: Path, slots: int, lines: list[str], *options: str) -> None:
    """Run a job, which goes on until it is to end, until every line of the script has happened."""
    script.write_text("\n".join(lines))
    job.allocate(slots)
    job.start(TRAIN, job.results, "--delay", 0.1, options=options)
    job.until(lambda: len(list(job.folder.glob("faults.*.done"))) == len(lines))


def check(job: ElasticJob, undisturbed: Digests) -> None:
    """Let it end: with the weights of the undisturbed training, and nothing of it is left."""
    (job.results / "end").touch()
    compare(job, undisturbed)


def compare(job: ElasticJob, undisturbed: Digests) -> None:
    """Wait for the end, with the same promises."""
    assert job.end() == 0, job.stdout + job.stderr
    found = final(job.results)
    assert history.mistakes(history.read(job.results), SAMPLES, found["epochs"]) == []
    assert found["digest"] == undisturbed(found["epochs"])
    assert job.survivors() == []
    pids = {str(process.pid) for process in job.family}
    assert [path for path in Path("/dev/shm").iterdir() if pids & set(path.name.split("_"))] == []


DEATHS = {
    "one by one": [
        "at step 5, kill rank 3 in a micro-batch",
        "at step 10, kill rank 0 after the reduction",
        "at step 15, kill rank 1 after the commit",
    ],
    "all at once": [
        "at step 5, kill rank 3",
        "at step 5, kill rank 2",
        "at step 5, kill rank 1",
        "at step 12, drop rank 0",
    ],
    "drop": [
        "at step 5, drop rank 1",
        "at step 10, drop rank 0 after the commit",
        "at step 15, drop rank 2 in the data loader",
        "at step 20, slow rank 1 by 0.2 s for 3 steps",
    ],
    "flapping": [
        "at step 5, allocate 1 4 2 3 slots",
        "at step 6, allocate 4 1 2 slots",
        "at step 25, allocate 1 3 slots in a micro-batch",
        "at step 25, kill rank 1",
    ],
}


def with_full(scripts: dict[str, list[str]], quick: str) -> list[Any]:
    """Parameters: all of them but one are for the full run."""
    return [
        pytest.param(lines, id=name) if name == quick else full(lines, id=name)
        for name, lines in scripts.items()
    ]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lines", with_full(DEATHS, "one by one"))
def test_deaths(job: ElasticJob, script: Path, undisturbed: Digests, lines: list[str]) -> None:
    disturb(job, script, 4, lines)
    check(job, undisturbed)


@pytest.mark.full
@pytest.mark.timeout(120)
@pytest.mark.parametrize("place", ["after the reduction", "after the commit"])
def test_the_death_of_the_coordinator_in_the_last_step(
    job: ElasticJob, script: Path, undisturbed: Digests, place: str
) -> None:
    script.write_text(f"at step {2 * STEPS}, kill rank 0 {place}")
    job.allocate(2)
    job.start(TRAIN, job.results, "--epochs", 2, "--delay", 0.1)
    compare(job, undisturbed)
    assert job.events("failed")


RESIZES = {
    "the coordinator": [
        "at step 5, drop rank 1",
        "at resize 1, kill rank 0 at the door",
        "at resize 1, kill rank 0 in rendezvous",
        "at resize 2, kill rank 0 in transfer",
    ],
    "newcomers": [
        "at step 5, allocate 1 slot",
        "at step 10, allocate 4 slots",
        "at resize 2, kill a newcomer at the door",
        "at resize 2, kill a newcomer in rendezvous",
        "at resize 3, kill a newcomer in transfer",
    ],
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lines", with_full(RESIZES, "newcomers"))
def test_deaths_inside_resizes(job: ElasticJob, script: Path, undisturbed: Digests, lines: list[str]) -> None:
    disturb(job, script, 4, lines)
    check(job, undisturbed)


NOTICES = ["at step 5, terminate rank 1", "at step 10, terminate rank 0 after the reduction"]


@pytest.mark.full
@pytest.mark.timeout(120)
def test_notices(job: ElasticJob, script: Path, undisturbed: Digests) -> None:
    disturb(job, script, 3, NOTICES)
    job.until_size(1)
    check(job, undisturbed)
    assert not job.events("failed")


HANGS = [
    "at step 10, stop rank 0",
    "at step 15, hang rank 2 in the data loader",
    "at step 21, hang rank 0 in a micro-batch",
]


@pytest.mark.full
@pytest.mark.timeout(120)
def test_hangs(job: ElasticJob, script: Path, undisturbed: Digests) -> None:
    disturb(job, script, 4, HANGS, "--hang-timeout", "3")
    job.until(lambda: len(job.events("failed")) >= len(HANGS))
    check(job, undisturbed)


CHECKPOINTS = ("--checkpoint-interval", "0.2")


@pytest.mark.full
@pytest.mark.timeout(120)
def test_the_loss_of_all_workers_and_the_newest_checkpoint(
    job: ElasticJob, script: Path, undisturbed: Digests
) -> None:
    lines = [
        "at checkpoint 2, corrupt the newest checkpoint",
        "at checkpoint 2, kill rank 0",
        "at checkpoint 2, kill rank 1",
    ]
    disturb(job, script, 2, lines, *CHECKPOINTS)
    job.until(lambda: job.events("restored"))
    check(job, undisturbed)
    assert len(job.events("checkpoint_skipped")) == len(job.events("restarting")) == 1


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


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("small_disk")
def test_a_full_disk(job: ElasticJob, script: Path, undisturbed: Digests) -> None:
    disturb(job, script, 2, ["at checkpoint 1, fill the disk"], *CHECKPOINTS)
    job.until(lambda: job.events("checkpoint_failed"))
    (job.out / "checkpoint" / FILLING).unlink()
    job.until(lambda: job.events("checkpointed")[-1].get("again"))
    check(job, undisturbed)
    assert "No space left on device" in job.events("checkpoint_failed")[0]["reason"]
