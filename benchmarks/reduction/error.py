"""Rounding error of the mean over a step's micro-batches, element by element, against the exact mean.

Gradients are those of small models in training, and heavy-tailed random ones (`gradients`). They go through
a distributed optimizer, as samples whose gradients they are, so that weights and grids are a training's; the
first step, which has no history, is left out. The exact mean is math.fsum's. float32 sums are those of
`reduction="ring"` on one worker, in order, and the best that float32 can do, added in pairs.

Errors are in units of the largest element of their tensor's mean. First, tensor by tensor and step by step;
then, for elements by their size. "Worse" elements are farther from the exact mean than with float32 in order.
"""

import argparse
import gc
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import edt_hvd
import torch
from torch import nn

from reduction.gradients import STEPS, Gradients, all_sources

BIN_BITS = 4
BINS = 7
FLOAT32 = "float32, in order"


@dataclass(frozen=True)
class Errors:
    """Of one tensor in one step, for every way to sum: sizes in units of the largest element.

    Attributes:
        sizes: of the exact mean's elements.
        of: by name of the way; of the same shape.
    """

    sizes: torch.Tensor
    of: dict[str, torch.Tensor]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--micro-batches", type=int, nargs="+", default=[8, 64], help="of a step: powers of 2"
    )


def run(args: argparse.Namespace) -> None:
    edt_hvd.init()
    torch.set_num_threads(1)
    for micro_batches in args.micro_batches:
        if micro_batches.bit_count() != 1:
            raise SystemExit(f"--micro-batches {micro_batches} is not a power of 2: give 8, 16, 32, ...")
        for gradients in all_sources(micro_batches):
            errors = measure(gradients)
            print(f"\n{gradients.source}, {micro_batches} micro-batches, {len(errors)} tensors")
            print_by_tensor(errors)
            print_by_size(errors)


WAYS: dict[str, Callable[[Gradients], list[list[torch.Tensor]]]] = {
    FLOAT32: lambda gradients: reduced(gradients, reduction="ring"),
    "float32, in pairs": lambda gradients: by_tensor(gradients, pairwise_mean),
    "exact, 64 bits": lambda gradients: reduced(gradients, integer_bits=64),
    "exact, 32 bits": lambda gradients: reduced(gradients, integer_bits=32),
}


def measure(gradients: Gradients) -> list[Errors]:
    exact = by_tensor(gradients, exact_mean)
    found = {name: way(gradients) for name, way in WAYS.items()}
    errors = []
    for step in range(1, STEPS):
        for parameter, mean in enumerate(exact[step]):
            largest = mean.abs().max()
            if largest > 0:
                of = {name: (each[step][parameter] - mean).abs() / largest for name, each in found.items()}
                errors.append(Errors(mean.abs() / largest, of))
    return errors


def by_tensor(gradients: Gradients, mean: Callable[[torch.Tensor], torch.Tensor]) -> list[list[torch.Tensor]]:
    parameters = range(len(gradients.samples[0]))
    return [[mean(gradients.addends(step, parameter)) for parameter in parameters] for step in range(STEPS)]


def exact_mean(addends: torch.Tensor) -> torch.Tensor:
    """Rounded once, to float64."""
    sums = [math.fsum(column) for column in addends.T.tolist()]
    return torch.tensor(sums, dtype=torch.float64) / len(addends)


def pairwise_mean(addends: torch.Tensor) -> torch.Tensor:
    sums = addends / len(addends)
    while len(sums) > 1:
        sums = sums[::2] + sums[1::2]
    return sums[0]


def reduced(gradients: Gradients, **options: object) -> list[list[torch.Tensor]]:
    """The means by step and parameter, as a distributed optimizer computes them."""
    weights = [nn.Parameter(torch.zeros_like(each)) for each in gradients.samples[0]]
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=0.0), **options)  # type: ignore[arg-type]
    loader = edt_hvd.ElasticDataLoader(
        gradients.samples, gradients.micro_batches, 1, shuffle=False, collate_fn=lambda samples: samples[0]
    )
    means = []
    for step in loader:
        for sample in step:
            products = [(weight * each).sum() for weight, each in zip(weights, sample, strict=True)]
            step.backward(torch.stack(products).sum())
        means.append([weight.grad.reshape(-1).clone() for weight in weights if weight.grad is not None])
    del optimizer
    gc.collect()  # a living optimizer follows the next one's steps
    return means


def print_by_tensor(errors: list[Errors]) -> None:
    print(f"  {'':18} {'RMS':>9} {'max':>9}   / float32's: {'RMS':>7} {'(worst)':>8} {'max (worst)':>12}")
    for name in WAYS:
        rms = [root_mean_square(each.of[name]) for each in errors]
        largest = [float(each.of[name].max()) for each in errors]
        rms_ratios = ratios(rms, [root_mean_square(each.of[FLOAT32]) for each in errors])
        max_ratios = ratios(largest, [float(each.of[FLOAT32].max()) for each in errors])
        print(
            f"  {name:18} {power_of_2(median(rms)):>9} {power_of_2(max(largest)):>9}   {'':12}"
            f" {median(rms_ratios):7.3f} {max(rms_ratios):8.3f} {max(max_ratios):12.3f}"
        )


def print_by_size(errors: list[Errors]) -> None:
    print(f"  {'element':18} {'of all':>9}" + "".join(f"  {name:>29}" for name in ("64 bits", "32 bits")))
    sizes = torch.cat([each.sizes for each in errors])
    of = {name: torch.cat([each.of[name] for each in errors]) for name in WAYS}
    bins = (-sizes.log2() / BIN_BITS).floor().clamp(max=BINS - 1)
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            below = f"from 2^{-BIN_BITS * (number + 1)}" if number < BINS - 1 else "smaller, or 0"
            line = f"  {below:18} {100 * inside.double().mean():7.2f} %"
            for name in ("exact, 64 bits", "exact, 32 bits"):
                line += "  " + beside_float32(of[name][inside], of[FLOAT32][inside])
            print(line)


def beside_float32(errors: torch.Tensor, float32: torch.Tensor) -> str:
    (ratio,) = ratios([root_mean_square(errors)], [root_mean_square(float32)])
    worse = 100 * float((errors > float32).double().mean())
    return f"RMS x {ratio:9.3g}, worse {worse:5.1f} %"


def root_mean_square(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt())


def ratios(values: list[float], beside: list[float]) -> list[float]:
    """Equal ones give 1, zeros too."""
    return [
        1.0 if value == other else (value / other if other else math.inf)
        for value, other in zip(values, beside, strict=True)
    ]


def power_of_2(value: float) -> str:
    return f"2^{math.log2(value):.1f}" if value else "0"
