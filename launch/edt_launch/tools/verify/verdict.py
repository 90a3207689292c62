"""What the records of several runs say: do the bits agree, and if not, where do they part and why. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from edt_launch.tools.verify.causes import Explanation, explain
from edt_launch.tools.verify.differences import Difference, first_difference
from edt_launch.tools.verify.records import KINDS, Run
from edt_launch.tools.verify.traces import Finding


@dataclass(frozen=True)
class Verdict:
    """What came out.

    Attributes:
        runs: names of all runs.
        steps: steps that were compared.
        compared: tensors and values compared after every step.
        difference: the first, or None if the bits agree.
        explanation: its likely cause.
    """

    runs: tuple[str, ...]
    steps: int
    compared: int
    difference: Difference | None = None
    explanation: Explanation | None = None

    @property
    def agree(self) -> bool:
        """Whether the bits agree."""
        return self.difference is None


def verdict(runs: Sequence[Run], finding: Finding | None = None) -> Verdict:
    """Judge the runs of a script.

    Args:
        runs: the reference first; the more alike a run is to it, the earlier it should come.
        finding: where the traces of the runs that differ first part, if they have been taken.
    """
    reference = runs[0]
    last = reference.coordinator[reference.steps]
    difference = first_difference(runs)
    return Verdict(
        runs=tuple(run.name for run in runs),
        steps=reference.steps,
        compared=sum(len(last.digests[kind]) for kind in KINDS),
        difference=difference,
        explanation=None if difference is None else explain(difference, finding),
    )
