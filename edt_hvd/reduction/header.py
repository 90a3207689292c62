"""The header of a step: one row from every worker, sent beside the gradients to all of them in one transfer.

A row says whether its worker wants to stop (so that all stop after the same step, without a message of
their own), holds the weighted losses of its micro-batches, and what the parts of the reduction report.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import NamedTuple

import horovod.torch as hvd
import numpy as np
import torch
from numpy.typing import NDArray

from edt_hvd.errors import GradientError
from edt_hvd.world import stages, waits

Report = NDArray[np.int32]

CAPACITY = 16
"""Losses for which a row has room at least."""


class Weighting(IntEnum):
    """Where the weight of a micro-batch comes from."""

    SAMPLES = 0
    GIVEN = 1


class Loss(NamedTuple):
    """The loss of a micro-batch.

    Attributes:
        value: the mean loss times the weight.
        weight: what the script gave; 0 where it is the share of the batch's samples.
        weighting: which of both; None where there was no backward pass.
    """

    value: float
    weight: float = 0.0
    weighting: Weighting | None = None


@dataclass(frozen=True)
class Header:
    """The rows of all workers.

    Attributes:
        stop_wanted: the launcher has announced a new world to some worker.
        loss: the whole batch's mean loss, correctly rounded, so that it does not depend on who computed what.
        weight: the sum of the weights that the script gave; None where it gave none.
        reports: for each part of the reduction, one row a worker.
        loops: over loaders that each worker has begun since the last header.
    """

    stop_wanted: bool
    loss: float
    weight: float | None
    reports: tuple[Report, ...]
    loops: tuple[int, ...] = ()


class WorkersReturned(BaseException):
    """The elastic function has returned on other workers, which take part in no more collectives.

    No `Exception`: a script's own handlers must let it through to `returning`, which says where and when.
    """


def exchange(
    stop_wanted: bool, losses: Sequence[Loss], capacity: int, reports: Sequence[Report], loops: int = 0
) -> Header:
    """Send this worker's row and receive everybody's. A collective.

    Args:
        stop_wanted: as in `Header`.
        losses: of this worker's micro-batches, `capacity` of them at most.
        capacity: the largest number of losses that a worker may have; the same everywhere.
        reports: integers, as many as on every other worker.
        loops: over loaders that this worker has begun since the last header.

    Raises:
        GradientError: the script has given weights for some micro-batches only.
    """
    lengths = [len(report) for report in reports]
    capacity = -(-capacity // CAPACITY) * CAPACITY  # steps of two loaders have rows of one length, mostly
    row = np.zeros(
        1,
        dtype=[
            ("stop", np.int64),
            ("loops", np.int64),
            ("losses", np.float64, (capacity,)),
            ("weights", np.float64, (capacity,)),
            ("kinds", np.int64, (len(Weighting),)),
            ("reports", np.int32, (sum(lengths) + sum(lengths) % 2,)),
        ],
    )
    row["stop"], row["loops"] = stop_wanted, loops
    row["losses"][0, : len(losses)] = [each.value for each in losses]
    row["weights"][0, : len(losses)] = [each.weight for each in losses]
    for each in losses:
        if each.weighting is not None:
            row["kinds"][0, each.weighting] = 1
    if reports:
        row["reports"][0, : sum(lengths)] = np.concatenate(reports)
    with stages.calling("the end of a step"):
        rows = gather(row, "edt.header")
    parts = np.split(rows["reports"][:, : sum(lengths)], np.cumsum(lengths)[:-1], axis=1) if reports else []
    loss, weight = mean_loss(
        rows["losses"].ravel().tolist(),
        rows["weights"].ravel().tolist(),
        [bool(column.any()) for column in rows["kinds"].T],
    )
    return Header(bool(rows["stop"].any()), loss, weight, tuple(parts), tuple(rows["loops"].tolist()))


def mean_loss(
    losses: Sequence[float], weights: Sequence[float], kinds: Sequence[bool]
) -> tuple[float, float | None]:
    """A batch's mean loss, and the sum of the weights that the script gave.

    Args:
        losses: of micro-batches, weighted.
        weights: given by the script.
        kinds: which of `Weighting` there are.

    Raises:
        GradientError: both.
    """
    if all(kinds):
        raise GradientError(
            "step.backward() was given a weight for some micro-batches of a step and none for others; pass "
            "one in every call, 0 where there is nothing to average over"
        )
    if not kinds[Weighting.GIVEN]:
        return exact_sum(losses), None
    weight = exact_sum(weights)
    return exact_sum(losses) / weight if weight else math.nan, weight


def check_loops(loops: Sequence[int]) -> None:
    """Check that all workers, by rank, have begun as many loops over loaders since the last header.

    Raises:
        GradientError: they have not.
    """
    ranks: dict[int, list[int]] = {}
    for rank, count in enumerate(loops):
        ranks.setdefault(count, []).append(rank)
    if len(ranks) > 1:
        found = "; ".join(
            f"rank {', '.join(map(str, those))} has begun {count or 'none'}" for count, those in ranks.items()
        )
        raise GradientError(
            f"the workers are not in the same loop over a loader: since the last step, {found}. Such a loop "
            "was left on some workers only, by break for instance. Decide about that by a value that is the "
            "same on all of them, such as step.loss or edt_hvd.average(value), not by the loss of a worker's "
            "own micro-batch"
        )


def check_steps(steps: Sequence[int]) -> None:
    """Check that the optimizer has stepped as often on every worker, by rank, since the last pass.

    Raises:
        GradientError: it has not.
    """
    others = [f"{count} on rank {rank}" for rank, count in enumerate(steps) if count != steps[0]]
    if others:
        raise GradientError(
            f"calls of optimizer.step() since the last pass over a step: {steps[0]} on rank 0, "
            f"{', '.join(others)}; every worker has to step, or each trains a model of its own"
        )


def check_outside(flags: Sequence[int]) -> None:
    """Check that all workers or none have gradients from outside the loop over a step.

    Raises:
        GradientError: only some have.
    """
    if any(flags) and not all(flags):
        ranks = ", ".join(str(rank) for rank, flag in enumerate(flags) if flag)
        raise GradientError(
            "loss.backward() outside the loop over a step's micro-batches has left gradients on rank "
            f"{ranks} only; call it on every worker, or optimizer.zero_grad() after it where they are not to "
            "be trained on"
        )


def gather(row: NDArray[np.void], name: str) -> NDArray[np.void]:
    """The rows of all workers, in the order of their ranks. A collective.

    Every worker adds its row, and a one before it, to a table that is zero elsewhere, so one small all-reduce
    is all it takes. Horovod fills in zeros for a worker that waits in `hvd.join()`.

    Args:
        row: one structured element whose size is a multiple of eight bytes; the same type everywhere.
        name: of the all-reduce; one for each kind of row, so that Horovod recognises it.

    Raises:
        WorkersReturned: The elastic function has returned on some workers.
    """
    waits.note()
    if hvd.size() == 1:
        return row
    table = np.zeros((hvd.size(), 1 + row.nbytes // 8), dtype=np.int64)
    table[hvd.rank()] = 1, *row.view(np.int64)
    with stages.waiting_for_others():
        hvd.allreduce_(torch.from_numpy(table), name=name, op=hvd.Sum)
    if not table[:, 0].all():
        raise WorkersReturned
    return table[:, 1:].copy().view(row.dtype).reshape(-1)


def exact_sum(values: Sequence[float]) -> float:
    """The sum, correctly rounded, whatever the order; inf and nan as IEEE 754 has them."""
    special = [value for value in values if not math.isfinite(value)]
    if special:
        total = sum(special)
        return math.nan if math.isnan(total) else total
    try:
        return math.fsum(values)
    except OverflowError:  # a partial sum beyond float64
        return rounded(sum(map(Fraction, values), Fraction()))


def rounded(value: Fraction) -> float:
    """The nearest float64; inf beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
