"""What is measured of a mini-batch besides its loss."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

Number = float | torch.Tensor


def accuracy(outputs: Any, target: Any) -> torch.Tensor:
    """Top-1 accuracy in percent; 0 where outputs and target are not scores of classes and their numbers.

    Args:
        outputs: scores, (samples, classes, ...).
        target: numbers of classes, (samples, ...).
    """
    nothing = torch.zeros((), dtype=torch.float64)
    if not isinstance(outputs, torch.Tensor) or not isinstance(target, torch.Tensor):
        return nothing
    is_classes = not target.is_floating_point() and not target.is_complex()
    if not is_classes or outputs.dim() < 2 or not target.numel():
        return nothing
    if outputs.shape[:1] + outputs.shape[2:] != target.shape:
        return nothing
    correct = outputs.detach().argmax(dim=1) == target.to(outputs.device)
    return correct.sum().double() * 100 / target.numel()


def measured(functions: Sequence[Callable[..., Any]], outputs: Any, target: Any) -> tuple[Number, ...]:
    """The program's own metrics."""
    with torch.no_grad():
        return tuple(function(outputs, target) for function in functions)


def as_float(name: str, value: Any) -> float:
    """A number, or a tensor with one element, as a float.

    Raises:
        TypeError: it is neither.
    """
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{name} is {value!r}; expected a number, or a tensor with one element") from error
