"""Metrics over all workers."""

from collections.abc import Mapping
from typing import Any

import horovod.torch as hvd
import torch

from edt_hvd import world

Metrics = float | torch.Tensor | Mapping[str, float | torch.Tensor]


def average(metrics: Metrics, weight: float = 1.0) -> Any:
    """The weighted mean of metrics over all workers. A collective: every worker must call it.

    Args:
        metrics: a number, a tensor, or a mapping of names to numbers and tensors; the same names and
            shapes on every worker.
        weight: this worker's weight, such as its number of samples. Not negative.

    Returns:
        The same structure: float for a number, tensor (dtype and device kept; float32 for integers) for a
        tensor, dict for a mapping. Sums are taken in float64.

    Raises:
        ValueError: a negative weight, or weights that sum to zero.
        TypeError: a metric that is neither a number nor a tensor.
    """
    if weight < 0:
        raise ValueError(f"average: weight={weight} is negative; give the number of samples, for example")
    world.size()
    named = metrics if isinstance(metrics, Mapping) else {"": metrics}
    tensors = {name: _as_float64(name, value) for name, value in sorted(named.items())}
    flat = torch.cat(
        [tensor.reshape(-1) * weight for tensor in tensors.values()] + [torch.tensor([weight]).double()]
    )
    flat = hvd.allreduce(flat, op=hvd.Sum, name="edt.average")
    total = flat[-1].item()
    if total == 0:
        raise ValueError("average: the weights of all workers sum to zero; at least one must have samples")
    parts = (flat[:-1] / total).split([tensor.numel() for tensor in tensors.values()])
    means = {name: _like(named[name], part) for name, part in zip(tensors, parts, strict=True)}
    return {name: means[name] for name in named} if isinstance(metrics, Mapping) else means[""]


def _as_float64(name: str, value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor | float | int):
        raise TypeError(f"average: metric {name!r} is a {type(value).__name__}; give a number or a tensor")
    return torch.as_tensor(value).detach().to("cpu", torch.float64)


def _like(original: Any, mean: torch.Tensor) -> Any:
    if not isinstance(original, torch.Tensor):
        return mean.item()
    dtype = original.dtype if original.is_floating_point() else torch.float32
    return mean.reshape(original.shape).to(original.device, dtype)
