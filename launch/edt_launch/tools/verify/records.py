"""What the workers of a run have written down; `edt_hvd.observers.recording` says how."""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edt_launch.tools.verify.schedules import Schedule

KINDS = ("parameters", "buffers", "optimizer", "loss", "values")
"""Kinds of things recorded, in the order in which a difference is looked for."""

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
class Run:
    """One run of the script.

    Attributes:
        name: what to call it.
        schedule: its sizes.
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


def read(name: str, schedule: Schedule, folder: Path) -> Run:
    """Read what the workers of a run have written into its folder of records."""
    lines = list(_lines(folder, "record"))
    found = {(line["step"], line["rank"]): _record(line) for line in lines}
    first: Mapping[str, Any] = next((line for line in lines if line["step"] == line["rank"] == 0), {})
    return Run(
        name,
        schedule,
        tuple(found[key] for key in sorted(found)),
        tuple(first.get("reductions", ())),
        first.get("holds", {}),
        tuple(map(_operator, _lines(folder, "operators"))),
    )


def _lines(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(f"{kind}.*.jsonl")):
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _record(line: Mapping[str, Any]) -> Record:
    return Record(line["step"], line["rank"], line["size"], {kind: line[kind] for kind in KINDS})


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
