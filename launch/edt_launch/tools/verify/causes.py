"""Whether the bits of several runs agree, and if not, the likely cause and what to do about it. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from edt_launch.tools.verify.records import KINDS, LENGTH, Difference, RecordedRun, first_difference
from edt_launch.tools.verify.traces import Finding, Parting


class Cause(StrEnum):
    """The likely cause of a difference."""

    INITIAL_STATE = "unseeded initial state"
    DATA = "unseeded randomness in the samples"
    RANDOM = "unseeded randomness"
    OPERATOR = "non-deterministic operator"
    OUTSIDE = "state outside TorchState, or dependence on the rank"
    BUFFERS = "buffers that nobody keeps equal"
    REDUCTION = "the reduction"
    LENGTH = "the number of steps"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Explanation:
    """A likely cause, what speaks for it, and what to do about it."""

    cause: Cause
    why: str
    advice: str


@dataclass(frozen=True)
class Verdict:
    """The result.

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


_LENGTH = Explanation(
    Cause.LENGTH,
    "all steps that both runs have made agree, but one of them has made more",
    "Let the end of training depend on the state, not on the number of workers or on time.",
)
_INITIAL_STATE = Explanation(
    Cause.INITIAL_STATE,
    "the runs differ before the first step",
    "Call torch.manual_seed(...) before the model is made.",
)
_BUFFERS = Explanation(
    Cause.BUFFERS,
    "the parameters agree, the buffers do not",
    "Give DistributedOptimizer the model with these buffers, as its second argument, and put the model into "
    "TorchState.",
)
_RING = Explanation(
    Cause.REDUCTION,
    'reduction="ring" adds gradients up in an order that depends on the number of workers',
    'Use reduction="exact", or live with differences in the last bits.',
)
_NOT_SEEN_AGAIN = Explanation(
    Cause.RANDOM,
    "two runs with the same sizes differ, and two more with a trace do not show where",
    "Seed every source of random numbers, and try edt_hvd.init(deterministic=True).",
)
_NOT_SEEN = Explanation(
    Cause.UNKNOWN,
    "the operators of the two runs do not show where they part",
    "Look at what a step does without torch's operators: numpy, files, time.",
)

_BY_PARTING = {
    Parting.DATA: Explanation(
        Cause.DATA,
        "the samples differ {place}, before anything is computed with them",
        "In the dataset, its transforms and the collate function, draw from the global generators of torch, "
        "numpy or random, or seed your own with the number of the sample.",
    ),
    Parting.RANDOM: Explanation(
        Cause.RANDOM,
        "{operator} drew other random numbers {place}",
        "Let it draw from torch's global generator, and call torch.manual_seed(...) before training. Seed a "
        "generator of its own, and put its state into TorchState.",
    ),
    Parting.OPERATOR: Explanation(
        Cause.OPERATOR,
        "{operator} made other outputs of the same inputs {place}",
        "Try edt_hvd.init(deterministic=True), or replace the operator.",
    ),
    Parting.GRADIENT: Explanation(
        Cause.UNKNOWN,
        "all micro-batches agree, but the reduced gradient of {operator} does not",
        "Look for gradients that are computed without torch's operators, such as with numpy.",
    ),
}
"""By what differs first, where that alone says it."""


def verdict(runs: Sequence[RecordedRun], finding: Finding | None = None) -> Verdict:
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


def explain(difference: Difference, finding: Finding | None) -> Explanation:
    """The likely cause of a difference; `finding` is where the traces of the two runs part, if they do."""
    if difference.kind == LENGTH:
        return _LENGTH
    if difference.step == 0:
        return _INITIAL_STATE
    if difference.kind == "buffers" and not difference.is_repetition:
        return _BUFFERS
    return _by_sizes(difference) if finding is None else _by_trace(difference, finding)


def _by_sizes(difference: Difference) -> Explanation:
    if difference.is_repetition:
        return _NOT_SEEN_AGAIN
    if _is_ring(difference):
        return _RING
    if difference.is_of_workers:
        return _outside(difference, "workers of the same run differ")
    if not difference.run.schedule.is_fixed:
        return _outside(difference, "runs of a fixed size agree, one that was resized does not")
    return _NOT_SEEN


def _by_trace(difference: Difference, finding: Finding) -> Explanation:
    operator = finding.operator
    place = f"in {'the backward pass of ' if finding.backward else ''}micro-batch {finding.micro_batch}"
    if finding.micro_batch is None:
        place = "between the reduction and commit()"
    match finding.parting:
        case Parting.GRADIENT if _is_ring(difference):
            return _RING
        case Parting.INPUT if buffers := _buffers_read(difference, finding):
            return replace(_BUFFERS, why=f"{operator} reads {buffers}, which differs {place}")
        case Parting.INPUT:
            return _from_elsewhere(difference, f"{operator} gets other inputs {place}")
        case Parting.PATH:
            return _from_elsewhere(difference, f"{operator} runs {place} in place of another operator")
    known = _BY_PARTING[finding.parting]
    return replace(known, why=known.why.format(operator=operator, place=place))


def _from_elsewhere(difference: Difference, what: str) -> Explanation:
    why = f"{what}, though all that torch had computed before agrees"
    if difference.is_repetition:
        return Explanation(
            Cause.RANDOM,
            f"{why}: something came in from elsewhere, such as numpy's random numbers or the time",
            "Seed it, or draw from torch's global generator instead.",
        )
    return _outside(difference, why)


def _outside(difference: Difference, why: str) -> Explanation:
    held = ", ".join(f"{name} ({kind})" for name, kind in difference.reference.holds.items())
    return Explanation(
        Cause.OUTSIDE,
        why,
        f"The TorchState has {held}. Put into it whatever else a step reads and changes, and let nothing "
        "that is computed depend on the rank or the number of workers.",
    )


def _buffers_read(difference: Difference, finding: Finding) -> str:
    known = difference.reference.coordinator[difference.step].digests["buffers"]
    return "" if difference.is_repetition else next((name for name in finding.reads if name in known), "")


def _is_ring(difference: Difference) -> bool:
    return "ring" in difference.reference.reductions and not difference.is_of_workers
