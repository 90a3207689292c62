"""Where the records of runs first differ. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from edt_launch.tools.verify.records import KINDS, Record, Run

SHARED = ("parameters", "buffers", "optimizer")
"""Kinds that are the same on every worker; the others may be kept by the coordinator alone."""

LENGTH = "length"
"""The kind of a difference in the number of steps."""


@dataclass(frozen=True)
class Difference:
    """The first difference between two runs.

    Attributes:
        reference: the run compared with.
        run: the run that differs; the reference itself if its workers differ from one another.
        step: the step after which it shows; 0 is the beginning.
        rank: of the worker that differs from the reference's rank 0.
        size: number of workers then.
        kind: one of `KINDS`, or `LENGTH`.
        name: of the first tensor or value that differs.
        others: how many more differ at the same step.
    """

    reference: Run
    run: Run
    step: int
    rank: int
    size: int
    kind: str
    name: str
    others: dict[str, int]

    @property
    def is_of_workers(self) -> bool:
        """Whether it is between workers of one run."""
        return self.run is self.reference

    @property
    def is_repetition(self) -> bool:
        """Whether both runs have the same sizes."""
        return self.run.schedule == self.reference.schedule and not self.is_of_workers


def first_difference(runs: Sequence[Run]) -> Difference | None:
    """The first difference of the first run that differs from the first of them."""
    return next((d for run in runs if (d := _difference(runs[0], run)) is not None), None)


def _difference(reference: Run, run: Run) -> Difference | None:
    truth = reference.coordinator
    for record in run.records:
        if record.step not in truth:
            break
        names = _differing(truth[record.step], record)
        if names:
            kind, name = names[0]
            others = {k: n for k in KINDS if (n := sum(k == other for other, _ in names[1:]))}
            return Difference(reference, run, record.step, record.rank, record.size, kind, name, others)
    if run.steps != reference.steps:
        step = min(run.steps, reference.steps)
        name = f"{run.steps} instead of {reference.steps}"
        return Difference(reference, run, step, 0, run.coordinator[run.steps].size, LENGTH, name, {})
    return None


def _differing(truth: Record, record: Record) -> list[tuple[str, str]]:
    """Kinds and names of what differs, in the order of `KINDS`."""
    kinds = KINDS if record.rank == 0 else SHARED
    pairs = ((kind, truth.digests[kind], record.digests[kind]) for kind in kinds)
    return [
        (kind, name) for kind, a, b in pairs for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)
    ]
