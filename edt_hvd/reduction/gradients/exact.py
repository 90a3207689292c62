"""reduction="exact": gradients summed in fixed point, bitwise the same for every number of workers.

Every micro-batch's gradient is weighted and rounded to an integer on its parameter's grid (`grid`), added up
here and over the workers (`tensor_sum`), and turned back into a float once. The grids of a step follow
from the exponents of earlier steps' addends, on which the workers agree in every header; they belong to the
training's state, and newcomers receive them with it.
"""

import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import horovod.torch as hvd
import numpy as np
import torch
from typing_extensions import override

from edt_hvd.errors import GradientError, NonFiniteGradientWarning, StateError
from edt_hvd.reduction.fixed_point import grid
from edt_hvd.reduction.fixed_point.grid import Grid, IntegerBits
from edt_hvd.reduction.fixed_point.tensor_sum import (
    NOTHING,
    Addend,
    FixedPointSum,
    add_together,
    is_asynchronous,
    read_sizes,
    read_together,
    send_sizes,
)
from edt_hvd.reduction.gradients.bucket import Bucket
from edt_hvd.reduction.gradients.reducer import BucketReducer
from edt_hvd.reduction.header import Report

_INTEGERS: dict[IntegerBits, torch.dtype] = {32: torch.int32, 64: torch.int64}


class ExactBucket(Bucket):
    """Adds up gradients as integers, each parameter's on a grid of its own.

    The gradients take the place of the integers that they are read from, from the beginning of the bucket on,
    if they need no more memory. They are there until the first addend of the next pass comes to the bucket.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], bits: IntegerBits) -> None:
        self._bits: IntegerBits = bits
        super().__init__(parameters)
        self.sums = [FixedPointSum(part) for part in self._total.split(self.sizes)]  # type: ignore[no-untyped-call]
        self._gathered = dict[int, Addend]()
        """What is to be added by the next kernel on a GPU, to the sums of these indices."""
        self._gathered_late = False
        """Whether it goes to `late_total`."""
        self._stream: torch.cuda.Stream | None = None
        """The stream that it was computed on."""

    @override
    def _memory(self, size: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        integers = _INTEGERS[self._bits]
        self._total = torch.zeros(size, dtype=integers, device=device)
        if dtype.itemsize > integers.itemsize:
            return super()._memory(size, dtype, device)
        return self._total.view(dtype)[:size]

    @property
    def total(self) -> torch.Tensor:
        """The integers."""
        return self._total

    @override
    def begin(self) -> None:
        super().begin()
        self._gathered.clear()

    def _add(self, index: int, gradient: torch.Tensor, weight: float, into: torch.Tensor | None) -> None:
        """On a GPU, what comes for a bucket is gathered: one kernel adds it all."""
        if not is_asynchronous(gradient):
            self.sums[index].add(gradient, weight, into)
            return
        stream = torch.cuda.current_stream(gradient.device) if gradient.is_cuda else None
        if index in self._gathered or (into is not None) != self._gathered_late or stream != self._stream:
            self.flush()
        self._gathered_late, self._stream = into is not None, stream
        self._gathered[index] = Addend(self.sums[index], self.offsets[index], gradient, weight)
        if len(self._gathered) == len(self.sums):
            self.flush()

    def flush(self) -> None:
        """Add what was gathered."""
        addends, self._gathered = list(self._gathered.values()), {}
        if addends:
            with torch.cuda.stream(self._stream):
                add_together(addends, self.late_total() if self._gathered_late else self.total)

    @override
    def launch(self) -> None:
        self.flush()
        super().launch()

    def reduce_outside(self, exponents: Sequence[int], special: Sequence[int]) -> None:
        """Reduce what lay outside the limit on any worker."""
        for index, each in enumerate(self.sums):
            parts = [each.level(n) for n in range(1, each.grid.levels(exponents[index]) + 1)]
            parts += [each.specials()] if special[index] else []
            for number, part in enumerate(parts):
                self._reduce(part, f"{self.name}.{index}.outside.{number}")

    def read(self, divisor: float | None) -> None:
        """Turn the sums, divided, into gradients, from the first: none overwrites integers still needed."""
        if divisor is None and is_asynchronous(self.flat):
            read_together(self.sums, self.total, self.flat)
            return
        for each, part in zip(self.sums, self.parts, strict=True):
            each.read(part, divisor)


class ExactReducer(BucketReducer[ExactBucket]):
    """Fixed-point sums, and the history that their grids follow from.

    Args:
        parameters, bucket_bytes: as for `BucketReducer`.
        bits: of the integers that are added up and reduced.
        names: gives the parameters' names, in the order of `parameters`, for messages.
    """

    kind: ClassVar[Literal["exact"]] = "exact"

    def __init__(
        self,
        parameters: Callable[[], list[torch.nn.Parameter]],
        bucket_bytes: int,
        bits: IntegerBits,
        names: Callable[[], list[str]],
    ) -> None:
        self._bits = bits
        self._names = names
        self._exponents: dict[torch.nn.Parameter, int] = {}
        self._passes = 0
        self._history_agreed = True
        self._micro_batches = 1
        self._outside: dict[torch.nn.Parameter, tuple[int, int]] = {}
        self._not_finite: set[torch.nn.Parameter] = set()
        self._has_differed = False
        super().__init__(parameters, bucket_bytes)

    def _new_bucket(self, parameters: Sequence[torch.nn.Parameter]) -> ExactBucket:
        return ExactBucket(parameters, self._bits)

    # The history, as a state.

    def state_dict(self) -> dict[str, Any]:
        """The history from which the next step's grids follow."""
        exponents = [self._exponents.get(parameter, NOTHING) for parameter in self._parameters()]
        return {"exponents": torch.tensor(exponents, dtype=torch.int16, device="cpu"), "passes": self._passes}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved history.

        Raises:
            StateError: it is of an optimizer with another number of parameters.
        """
        parameters, exponents = self._parameters(), state["exponents"].tolist()
        if len(parameters) != len(exponents):
            raise StateError(
                f"the saved gradients' exponents are of {len(exponents)} parameters, the optimizer has "
                f"{len(parameters)}; load the state into the optimizer it was saved from"
            )
        self._exponents = {p: e for p, e in zip(parameters, exponents, strict=True) if e != NOTHING}
        self._passes = state["passes"]
        self._history_agreed = True

    @override
    def reset(self) -> None:
        """The history is not used until every worker has loaded the same one."""
        super().reset()
        self._history_agreed = False

    # The loop over a step.

    @override
    def begin_pass(self, micro_batches: int, again: bool = False, after_other: bool = False) -> None:
        super().begin_pass(micro_batches, again, after_other)
        self._micro_batches = micro_batches
        if not self._history_agreed:
            self._exponents, self._passes, self._history_agreed = {}, 0, True
        for parameter, each in self._sums():
            each.begin(self._grid(parameter))

    def _grid(self, parameter: torch.nn.Parameter) -> Grid:
        addends = self._micro_batches * (self._passes or grid.FIRST_PASSES)
        return grid.place(self._exponents.get(parameter), self._bits, addends)

    @override
    def before_backward(self, weight: float, last: bool, scaled: bool) -> None:
        """Take in the sizes of the last gradients while a GPU computes the next forward pass."""
        super().before_backward(weight, last, scaled)
        self._read_sizes()

    @override
    def after_backward(self) -> None:
        super().after_backward()
        for bucket in self._buckets:
            bucket.flush()
        send_sizes()

    def _read_sizes(self) -> None:
        read_sizes(each for bucket in self._buckets for each in bucket.sums)

    @override
    def report(self) -> Report:
        """A checksum of the grids; exponents, and whether there are inf or nan, by parameter; the rest."""
        self._read_sizes()
        sums = [each for _, each in self._sums()]
        grids = np.array([(each.grid.scale, each.grid.limit) for each in sums], dtype=np.int32)
        checksum = np.array([zlib.crc32(grids.tobytes())], dtype=np.uint32).view(np.int32)
        exponents = [each.exponent for each in sums]
        special = [each.special is not None for each in sums]
        return np.concatenate([checksum, exponents, special, super().report()]).astype(np.int32)

    @override
    def finish_pass(self, reports: Report, divisor: float | None = None) -> None:
        """Reduce.

        Raises:
            GradientError: the workers' grids or their optimizers' steps differ, or sums may have left their
                integers.
        """
        if (reports[:, 0] != reports[0, 0]).any():
            raise GradientError(
                "the workers disagree about the range of the gradients; put the optimizer into the "
                "edt_hvd.TorchState that the elastic function is called with, so that newcomers know it"
            )
        count = len(self._trainable)
        exponents = reports[:, 1 : count + 1].max(axis=0).tolist()
        special = reports[:, count + 1 : 2 * count + 1].max(axis=0).tolist()
        common = reports[:, 2 * count + 1 :]
        addends = common[:, :count].sum(axis=0).tolist()
        self._check_range(addends, exponents)
        self._outside = dict(zip(self._trainable, zip(exponents, special, strict=True), strict=True))
        super().finish_pass(common, divisor)
        self._remember(addends, exponents)
        self._warn_of(special)

    def _read(self, bucket: ExactBucket) -> None:
        found = [self._outside[parameter] for parameter in bucket.parameters]
        bucket.reduce_outside([exponent for exponent, _ in found], [special for _, special in found])
        bucket.synchronize()
        bucket.read(self._divisor)

    def _check_range(self, addends: Sequence[int], exponents: Sequence[int]) -> None:
        for (parameter, each), count, exponent in zip(self._sums(), addends, exponents, strict=True):
            if not grid.fits(each.grid, self._bits, count, exponent):
                raise GradientError(
                    f"{count} gradients of {self._name_of(parameter)} in a step of {self._micro_batches} "
                    f"micro-batches may leave the range of {self._bits} bits; call step.backward() once a "
                    "micro-batch, on the sum of the losses, or choose integer_bits=64"
                )

    def _remember(self, addends: Sequence[int], exponents: Sequence[int]) -> None:
        for (parameter, each), exponent in zip(self._sums(), exponents, strict=True):
            seen = exponent - each.grid.scale if exponent != NOTHING else None
            after = grid.remember(self._exponents.get(parameter), seen, self._bits)
            if after is not None:
                self._exponents[parameter] = after
        if any(addends):
            self._passes = max(self._passes, grid.passes(addends, self._micro_batches))

    def _warn_of(self, special: Sequence[int]) -> None:
        """Name the parameters whose gradients have inf or nan, when there are others than last time."""
        found = [p for p, is_special in zip(self._trainable, special, strict=True) if is_special]
        new = [p for p in found if p not in self._not_finite]
        self._not_finite = set(found)
        if new and self._scaled is False and hvd.rank() == 0:
            named = [f"{self._name_of(p)} ({_special_values(p)})" for p in new]
            more = f" and {len(named) - 3} more" if len(named) > 3 else ""
            warnings.warn(
                f"gradients that are not finite: {', '.join(named[:3])}{more}; as in torch, optimizer.step() "
                "takes them into the parameters unless the script looks for them first",
                NonFiniteGradientWarning,
                stacklevel=2,
            )

    @override
    def _note_difference(self) -> None:
        if hvd.rank() == 0 and not self._has_differed:
            warnings.warn(
                "backward passes after the loop over a step have added gradients that differ between the "
                "workers: their mean is used, and depends on the number of workers; compute what depends on "
                "samples or on the rank inside the loop, with step.backward()",
                stacklevel=2,
            )
        self._has_differed = True

    def _name_of(self, parameter: torch.nn.Parameter) -> str:
        names = zip(self._parameters(), self._names(), strict=True)
        return next(name for each, name in names if each is parameter)

    def _sums(self) -> list[tuple[torch.nn.Parameter, FixedPointSum]]:
        located = [(parameter, *self._layout.bucket_of[parameter]) for parameter in self._trainable]
        return [(parameter, bucket.sums[index]) for parameter, bucket, index in located]


def _special_values(parameter: torch.nn.Parameter) -> str:
    assert parameter.grad is not None
    return "nan" if parameter.grad.isnan().any() else "inf"
