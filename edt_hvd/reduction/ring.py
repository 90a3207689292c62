"""reduction="ring": gradients summed in their own type by Horovod's ring-allreduce."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from typing_extensions import override

from edt_hvd.reduction.bucket import Bucket
from edt_hvd.reduction.reducer import BucketReducer


class RingBucket(Bucket):
    """Adds up and reduces the gradients where they end up."""

    @property
    def total(self) -> torch.Tensor:
        """The gradients themselves."""
        return self.flat

    def _add(self, index: int, gradient: torch.Tensor, weight: float, into: torch.Tensor | None) -> None:
        (self.parts[index] if into is None else into).add_(gradient, alpha=weight)


class RingReducer(BucketReducer[RingBucket]):
    """Float sums. Their last bits depend on how many workers there are."""

    kind: ClassVar[Literal["ring"]] = "ring"

    def _new_bucket(self, parameters: Sequence[torch.nn.Parameter]) -> RingBucket:
        return RingBucket(parameters)

    @override
    def _read(self, bucket: RingBucket) -> None:
        if self._divisor is not None:
            bucket.flat.div_(self._divisor)
