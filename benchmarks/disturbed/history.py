"""The history that counts: which samples a job's weights have seen, however often steps were done again."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Execution:
    """One world's go at a step.

    Attributes:
        begun: when its first micro-batch was, in s of the machine's monotonic clock.
        world: a name for the world.
        samples: those that were used, and how often.
    """

    begun: float
    world: str
    samples: Counter[int]


Executions = dict[tuple[int, int], list[Execution]]
"""By epoch and step, in the order of time."""


def read(folder: Path) -> Executions:
    """What the workers of train.py have written down, without the half line that a killed one may leave."""
    texts = [file.read_text() for file in folder.glob("samples.*.jsonl")]
    return group(json.loads(line) for text in texts for line in text[: text.rfind("\n") + 1].splitlines())


def group(rows: Iterable[dict[str, Any]]) -> Executions:
    """The executions, from one row a micro-batch."""
    found: dict[tuple[int, int], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["epoch"], row["step"]][row["world"]].append(row)
    return {
        place: sorted(
            (
                Execution(
                    min(row["time"] for row in rows),
                    world,
                    Counter(s for row in rows for s in row["samples"]),
                )
                for world, rows in worlds.items()
            ),
            key=lambda execution: execution.begun,
        )
        for place, worlds in found.items()
    }


def redone(executions: Executions) -> int:
    """How many steps were begun again."""
    return sum(len(tries) - 1 for tries in executions.values())


def counting(executions: Executions) -> dict[tuple[int, int], Execution]:
    """The executions that count: going back to a step undoes what came of it and of all after it.

    A step that was committed is not begun again, unless all workers that knew of the commit are gone.
    """
    in_order = sorted(
        ((execution, place) for place, tries in executions.items() for execution in tries),
        key=lambda pair: pair[0].begun,
    )
    found: dict[tuple[int, int], Execution] = {}
    for execution, place in in_order:
        found = {earlier: kept for earlier, kept in found.items() if earlier < place}
        found[place] = execution
    return found


def mistakes(executions: Executions, samples: int, epochs: int) -> list[str]:
    """What is not as it should be: each sample once in every epoch of the history that counts."""
    used: dict[int, Counter[int]] = defaultdict(Counter)
    for (epoch, _), execution in counting(executions).items():
        used[epoch].update(execution.samples)
    expected = set(range(samples))
    found = []
    for epoch in sorted(set(range(epochs)) | used.keys()):
        missing = sorted(expected - used[epoch].keys())
        repeated = sorted(sample for sample, count in used[epoch].items() if count > 1)
        for what, which in (("missing", missing), ("used more than once", repeated)):
            if which:
                found.append(f"epoch {epoch}: {len(which)} samples {what}, sample {which[0]} for one")
        if epoch >= epochs:
            found.append(f"epoch {epoch}: there should be {epochs} epochs only")
    return found
