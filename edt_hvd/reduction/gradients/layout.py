"""Which bucket each trainable parameter of an optimizer is in."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import torch

from edt_hvd.errors import GradientError
from edt_hvd.reduction.bits import FLOATS, as_real
from edt_hvd.reduction.gradients.bucket import Bucket

BucketT = TypeVar("BucketT", bound=Bucket)


class Layout(Generic[BucketT]):
    """The trainable parameters of an optimizer, and the buckets that they are in.

    Args:
        parameters: in the optimizer's order.
        buckets: all parameters, each in one of them.
    """

    def __init__(
        self, parameters: Sequence[torch.nn.Parameter] = (), buckets: Sequence[BucketT] = ()
    ) -> None:
        self.parameters = parameters
        self.buckets = buckets
        self.bucket_of = {p: (bucket, i) for bucket in buckets for i, p in enumerate(bucket.parameters)}

    @classmethod
    def of(
        cls,
        parameters: Sequence[torch.nn.Parameter],
        bucket_bytes: int,
        new_bucket: Callable[[Sequence[torch.nn.Parameter]], BucketT],
    ) -> "Layout[BucketT]":
        """Put these parameters into new buckets of up to `bucket_bytes`.

        Raises:
            GradientError: a parameter's gradients cannot be summed; it is an 8-bit float, for example.
        """
        _check_types(parameters)
        return cls(parameters, [new_bucket(group) for group in cut(parameters, bucket_bytes)])

    def is_of(self, parameters: Sequence[torch.nn.Parameter]) -> bool:
        """Whether these parameters are the ones laid out, with the same dtypes and devices."""
        return len(parameters) == len(self.parameters) and all(map(self._is_placed, parameters))

    def _is_placed(self, parameter: torch.nn.Parameter) -> bool:
        bucket, index = self.bucket_of.get(parameter, (None, 0))
        if bucket is None:
            return False
        view = bucket.views[index]
        return (view.dtype, view.device) == (parameter.dtype, parameter.device)

    def view_of(self, parameter: torch.nn.Parameter) -> torch.Tensor | None:
        """The part of a bucket that holds the parameter's gradient after a reduction; None without one."""
        bucket, index = self.bucket_of.get(parameter, (None, 0))
        return None if bucket is None else bucket.views[index]

    def drop_gradients(self) -> None:
        """Remove gradients that are in the buckets from ``.grad``: nothing must step on an old one."""
        for parameter in self.parameters:
            if parameter.grad is not None and parameter.grad is self.view_of(parameter):
                parameter.grad = None


def cut(parameters: Iterable[torch.nn.Parameter], bucket_bytes: int) -> list[list[torch.nn.Parameter]]:
    """Group parameters, last first as backward reaches them, by dtype and device up to `bucket_bytes`."""
    groups: list[list[torch.nn.Parameter]] = []
    open_groups: dict[tuple[torch.dtype, torch.device], tuple[list[torch.nn.Parameter], int]] = {}
    for parameter in reversed(list(parameters)):
        kind = (parameter.dtype, parameter.device)
        nbytes = parameter.numel() * parameter.element_size()
        group, filled = open_groups.get(kind, ([], 0))
        if not group or filled + nbytes > bucket_bytes:
            group, filled = [], 0
            groups.append(group)
        group.append(parameter)
        open_groups[kind] = (group, filled + nbytes)
    return groups


def _check_types(parameters: Iterable[torch.nn.Parameter]) -> None:
    for parameter in parameters:
        if as_real(parameter.detach()).dtype not in FLOATS:
            known = ", ".join(str(dtype).removeprefix("torch.") for dtype in FLOATS)
            raise GradientError(
                f"a parameter of {parameter.dtype} and shape {list(parameter.shape)} is trainable, and "
                f"gradients of that type cannot be summed, only of {known} and complex numbers of these; "
                "keep it in one of them and convert it in the forward pass, or freeze it with "
                "requires_grad_(False)"
            )
