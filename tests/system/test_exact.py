"""The trained model is the same to the last bit, whatever the number of workers and however it changes."""

import itertools
import json
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import harness
from harness import MPI_ENVIRONMENT, MPIRUN, PROGRAMS, ElasticJob
from programs.models import ALL_STEPS, NAMES, STEPS
from tiers import full

SCHEDULED = PROGRAMS / "scheduled.py"
SIZES = (1, 2, 3, 4)
SHOWN = 4
"""How many of the values that differ are named."""

Digests = dict[str, str]
Run = list[tuple[int, int]]
"""Changes of the number of workers: after how many steps, to how many."""


@dataclass
class Journals:
    """What the workers of a job have written down: by run, model and step, each worker's rank and digests."""

    folder: Path
    size: dict[tuple[int, str, int], int] = field(default_factory=dict)
    digests: dict[tuple[int, str, int], dict[int, Digests]] = field(default_factory=dict)

    def read(self) -> "Journals":
        for file in self.folder.glob("steps.*.jsonl"):
            for line in file.read_text().splitlines():
                row = json.loads(line)
                place = row["run"], row["model"], row["step"]
                assert self.size.setdefault(place, row["size"]) == row["size"], place
                workers = self.digests.setdefault(place, {})
                assert workers.setdefault(row["rank"], row["digests"]) is row["digests"], (place, row["rank"])
        return self

    def sizes(self, run: int) -> list[int]:
        """The number of workers in every step of a run; each of them must have written the step down."""
        places = [(run, model, step) for step in range(1, STEPS + 1) for model in NAMES]
        for place in places:
            assert sorted(self.digests[place]) == list(range(self.size[place])), place
        return [self.size[place] for place in places]


def expected_sizes(start: int, run: Run) -> list[int]:
    """The number of workers in every step of a run that begins with `start`."""
    changes = dict(run)
    sizes = []
    for step in range(ALL_STEPS):
        start = changes.get(step, start)
        sizes.append(start)
    return sizes


def random_runs(seed: int, start: int) -> list[Run]:
    """Ten runs of two or three resizes each at random steps, to random sizes of 1 to 4.

    The seed has to be one with which every size follows on every other.
    """
    generator = random.Random(seed)
    runs: list[Run] = []
    followed = set()
    for _ in range(10):
        run = []
        for step in sorted(generator.sample(range(1, ALL_STEPS), generator.randint(2, 3))):
            size = generator.choice([size for size in SIZES if size != start])
            followed.add((start, size))
            run.append((step, size))
            start = size
        runs.append(run)
    assert followed == set(itertools.permutations(SIZES, 2)), f"other than seed={seed}"
    return runs


def check_runs(found: Journals, runs: list[Run], start: int, alone: Journals) -> None:
    """Every run had the sizes it should have, and no step differs from the training in one process."""
    for number, run in enumerate(runs):
        sizes = expected_sizes(start, run)
        assert found.sizes(number) == sizes, (number, run)
        wrong = [
            f"{model}, step {step}, rank {rank}: {name}"
            for step, model in itertools.product(range(1, STEPS + 1), NAMES)
            for rank, digests in found.digests[number, model, step].items()
            for name, digest in alone.digests[0, model, step][0].items()
            if digests.get(name) != digest
        ]
        assert not wrong, (number, start, run, wrong[:SHOWN])
        start = sizes[-1]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Journals:
    """The trainings in one process, without a launcher."""
    folder = tmp_path_factory.mktemp("alone")
    harness.run(sys.executable, SCHEDULED, folder)
    return Journals(folder).read()


@pytest.mark.full
def test_two_workers_train_the_same_bits_over_mpi(alone: Journals, tmp_path: Path) -> None:
    harness.run(*MPIRUN, 2, sys.executable, SCHEDULED, tmp_path, **MPI_ENVIRONMENT)
    check_runs(Journals(tmp_path).read(), [[]], 2, alone)


@pytest.mark.parametrize("count", [1, full(10)])
def test_resizes_at_random_steps_train_the_same_bits_over_gloo(
    job: ElasticJob, alone: Journals, count: int
) -> None:
    runs = random_runs(seed=113, start=2)[:count]
    job.allocate(2)
    job.start(SCHEDULED, job.results, "--changes", json.dumps(runs))
    for number, size in enumerate(size for run in runs for _, size in run):
        job.until((job.results / f"change.{number}").exists)
        job.allocate(size)
    assert job.end() == 0, job.stdout + job.stderr
    check_runs(Journals(job.results).read(), runs, 2, alone)
    assert not job.events("failed")
