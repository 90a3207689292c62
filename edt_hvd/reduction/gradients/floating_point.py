"""reduction="ring": gradients summed in their own floating-point type by Horovod's allreduce."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from typing_extensions import override

from edt_hvd.reduction.gradients.bucket import Bucket
from edt_hvd.reduction.gradients.reducer import BucketReducer


class FloatBucket(Bucket):
    """Adds up and reduces the gradients where they end up."""

    @property
    def total(self) -> torch.Tensor:
        """The gradients themselves."""
        return self.flat

    def _add(self, index: int, gradient: torch.Tensor, weight: float, into: torch.Tensor | None) -> None:
        (self.parts[index] if into is None else into).add_(gradient, alpha=weight)


class FloatReducer(BucketReducer[FloatBucket]):
    """Float sums. Their last bits depend on how many workers there are."""

    kind: ClassVar[Literal["ring"]] = "ring"

    def _new_bucket(self, parameters: Sequence[torch.nn.Parameter]) -> FloatBucket:
        return FloatBucket(parameters)

    @override
    def _read(self, bucket: FloatBucket) -> None:
        if self._divisor is not None:
            bucket.flat.div_(self._divisor)
