"""Where two traces of the same step part. No I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from edt_launch.tools.verify.records import Operator

Key = tuple[int, int]


class Parting(StrEnum):
    """In what two traces first differ."""

    DATA = "data"
    """The samples of a micro-batch."""
    RANDOM = "random"
    """What an operator that draws random numbers made of equal inputs."""
    OPERATOR = "operator"
    """What any other operator made of equal inputs."""
    INPUT = "input"
    """The inputs of an operator, though all before it agree: something came in from elsewhere."""
    PATH = "path"
    """Which operator runs."""
    GRADIENT = "gradient"
    """A reduced gradient, though all micro-batches agree."""


@dataclass(frozen=True)
class Finding:
    """Where two traces part.

    Attributes:
        parting: in what.
        operator: its name; a parameter's name for a gradient.
        micro_batch: which of the whole batch's, from 0; None between the reduction and the commit.
        backward: whether it was in the backward pass.
        reads: the parameters and buffers among the operator's inputs.
    """

    parting: Parting
    operator: str
    micro_batch: int | None = None
    backward: bool = False
    reads: tuple[str, ...] = ()


def compare(reference: Iterable[Operator], other: Iterable[Operator], rank: int) -> Finding | None:
    """Where the trace of a step parts from a reference of the same step; None if it does not.

    Micro-batches are compared whoever computed them; what follows the reduction, of `rank` in `other` with
    rank 0 of the reference.
    """
    theirs, ours = list(reference), list(other)
    batches, other_batches = _micro_batches(theirs), _micro_batches(ours)
    for index, key in enumerate(sorted(batches.keys() | other_batches.keys())):
        finding = _part(batches.get(key, []), other_batches.get(key, []), index)
        if finding is not None:
            return finding
    return _part(_update(theirs, 0), _update(ours, rank), None)


def _part(
    reference: Sequence[Operator], other: Sequence[Operator], micro_batch: int | None
) -> Finding | None:
    for a, b in zip(reference, other, strict=False):
        parting = _parting(a, b)
        if parting is not None:
            name = b.inputs if parting is Parting.GRADIENT else b.name
            return Finding(parting, name, micro_batch, b.phase == "backward", b.reads)
        if (a.name, a.phase) != (b.name, b.phase):
            return None
    return None


def _parting(a: Operator, b: Operator) -> Parting | None:
    """In what the next operators of two traces differ.

    In a backward pass only outputs tell something: there, gradients of the micro-batches before are added to,
    which are not the same ones for every number of workers.
    """
    if (a.name, a.phase) != (b.name, b.phase):
        return None if a.phase == "backward" else Parting.PATH
    if a.inputs != b.inputs:
        return None if a.phase == "backward" else Parting.INPUT
    if a.outputs == b.outputs:
        return None
    if a.name in ("data", "gradient"):
        return Parting(a.name)
    return Parting.RANDOM if b.is_random else Parting.OPERATOR


def _micro_batches(operators: Iterable[Operator]) -> dict[Key, list[Operator]]:
    found: dict[Key, list[Operator]] = {}
    for operator in operators:
        if operator.micro_batch is not None:
            found.setdefault(operator.micro_batch, []).append(operator)
    return found


def _update(operators: Iterable[Operator], rank: int) -> list[Operator]:
    return [operator for operator in operators if operator.micro_batch is None and operator.rank == rank]
