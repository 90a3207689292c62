"""What `edt_hvd.debug.recording` has written in the workers of runs, and where it first differs."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edt_launch.tools.verify.schedules import Schedule

KINDS = ("parameters", "buffers", "optimizer", "loss", "values")
"""Kinds of things recorded, in the order in which a difference is looked for."""

SHARED = ("parameters", "buffers", "optimizer")
"""Kinds that are the same on every worker; the others may be kept by the coordinator alone."""

LENGTH = "length"
"""The kind of a difference in the number of steps."""

Digests = Mapping[str, Mapping[str, str]]
"""For each kind the digests of its tensors and values, by name."""


@dataclass(frozen=True)
class Record:
    """What one worker had after one step; step 0 is the beginning."""

    step: int
    rank: int
    size: int
    digests: Digests


@dataclass(frozen=True)
class Operator:
    """One operator that a worker has run in the traced step.

    Attributes:
        rank: of the worker.
        micro_batch: the epoch, and the place in it of its first sample; None after the reduction.
        phase: forward, backward or update.
        name: as torch names it; "data" for the samples and "gradient" for a reduced gradient.
        inputs, outputs: digests. A gradient's `inputs` is the parameter's name.
        is_random: whether it draws random numbers.
        reads: the parameters and buffers among its inputs.
    """

    rank: int
    micro_batch: tuple[int, int] | None
    phase: str
    name: str
    inputs: str
    outputs: str
    is_random: bool = False
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordedRun:
    """One run of the script.

    Attributes:
        records: of all its workers, by step and rank.
        reductions: how gradients were reduced.
        holds: the types of the state's objects, by name.
        operators: of the traced step, in the order of each worker.
    """

    name: str
    schedule: Schedule
    records: tuple[Record, ...]
    reductions: tuple[str, ...] = ()
    holds: Mapping[str, str] = field(default_factory=dict)
    operators: tuple[Operator, ...] = ()

    @property
    def steps(self) -> int:
        """The last step recorded."""
        return max((record.step for record in self.records), default=0)

    @property
    def coordinator(self) -> dict[int, Record]:
        """The coordinator's records by step."""
        return {record.step: record for record in self.records if record.rank == 0}

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes it has really gone through."""
        return tuple(size for size, _ in itertools.groupby(r.size for r in self.coordinator.values()))


def read(name: str, schedule: Schedule, folder: Path) -> RecordedRun:
    """Read what the workers of a run have written into its folder of records."""
    lines = list(_lines(folder, "record"))
    every = (Record(at["step"], at["rank"], at["size"], {kind: at[kind] for kind in KINDS}) for at in lines)
    records = {(record.step, record.rank): record for record in every}
    first: Mapping[str, Any] = next((line for line in lines if line["step"] == line["rank"] == 0), {})
    return RecordedRun(
        name,
        schedule,
        tuple(records[key] for key in sorted(records)),
        tuple(first.get("reductions", ())),
        first.get("holds", {}),
        tuple(map(_operator, _lines(folder, "operators"))),
    )


def _lines(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(f"{kind}.*.jsonl")):
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _operator(line: Mapping[str, Any]) -> Operator:
    micro_batch = (line["epoch"], line["position"]) if "position" in line else None
    return Operator(
        line["rank"],
        micro_batch,
        line["phase"],
        line["operator"],
        line["inputs"],
        line["outputs"],
        line["random"],
        tuple(line["reads"]),
    )


@dataclass(frozen=True)
class Difference:
    """The first difference between two runs.

    Attributes:
        run: the run that differs; the reference itself if its workers differ from one another.
        step: the step after which it shows; 0 is the beginning.
        rank: of the worker that differs from the reference's rank 0.
        size: number of workers then.
        kind: one of `KINDS`, or `LENGTH`.
        name: of the first tensor or value that differs.
        others: how many more differ at the same step, by kind.
    """

    reference: RecordedRun
    run: RecordedRun
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


def first_difference(runs: Sequence[RecordedRun]) -> Difference | None:
    """The first difference of the first run that differs from the first of them."""
    return next((d for run in runs if (d := _difference(runs[0], run)) is not None), None)


def _difference(reference: RecordedRun, run: RecordedRun) -> Difference | None:
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
    kinds = KINDS if record.rank == 0 else SHARED
    pairs = ((kind, truth.digests[kind], record.digests[kind]) for kind in kinds)
    return [
        (kind, name) for kind, a, b in pairs for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)
    ]
