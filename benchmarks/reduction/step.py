"""Step time of exact reduction beside ring's, and the bytes that go into the all-reduces.

Blocks of steps with 64-bit integers, with 32-bit ones and with ring take turns in the same job. Every block
has a copy of the same model and a new optimizer, since a living one follows all steps; its first steps, in
which grids find their place and the overlap of reduction and backward pass begins, are not counted. Steps
are timed on the coordinator, on one thread a worker. A step's time is set by --micro and --passes. With
--device cuda, workers without a device of their own share a GPU, and wait for collectives far longer than
on several (`shared_gpu`).
"""

import argparse
import copy
import gc
import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from typing import Any

import edt_hvd
import horovod.torch as hvd
import shared_gpu
import torch
from spread import spread
from torch import nn
from torch.utils.data import TensorDataset

FEATURES, CLASSES = 256, 10
UNCOUNTED = 3
KINDS: dict[str, dict[str, Any]] = {
    "ring": {"reduction": "ring"},
    "exact, 64 bits": {"integer_bits": 64},
    "exact, 32 bits": {"integer_bits": 32},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parameters", type=float, default=1e6, help="about how many the model has")
    parser.add_argument("--micro", type=int, default=450, help="samples of a micro-batch")
    parser.add_argument("--passes", type=int, default=2, help="micro-batches of a worker in a step")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of blocks, after one not counted")
    parser.add_argument("--steps", type=int, default=6, help="counted optimizer steps of a block")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")


def run(args: argparse.Namespace) -> None:
    shared_gpu.separate()
    edt_hvd.init()
    torch.set_num_threads(1)
    model = network(args.parameters).to(device_of(args))

    @edt_hvd.elastic
    def compare(_: edt_hvd.TorchState) -> None:
        show_traffic(args, model)
        show_times(args, model)

    compare(edt_hvd.TorchState())


def device_of(args: argparse.Namespace) -> torch.device:
    return edt_hvd.device() if args.device == "cuda" else torch.device("cpu")


def network(parameters: float) -> nn.Module:
    """A perceptron with about that many parameters, the same on every worker."""
    torch.manual_seed(0)
    ends = FEATURES + CLASSES
    width = round((math.sqrt(ends**2 + 8 * parameters) - ends) / 4)  # ends * width + 2 * width**2 of them
    hidden = [layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), *hidden, nn.Linear(width, CLASSES))


def steps_of(kind: str, args: argparse.Namespace, model: nn.Module, count: int) -> Iterator[None]:
    """So many optimizer steps of a new training; one for every `next`."""
    model = copy.deepcopy(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    optimizer = edt_hvd.DistributedOptimizer(sgd, model, **KINDS[kind])
    batch = edt_hvd.size() * args.passes * args.micro
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count * batch, FEATURES, generator=generator)
    dataset = TensorDataset(inputs, torch.randint(CLASSES, (count * batch,), generator=generator))
    for step in edt_hvd.ElasticDataLoader(dataset, batch, args.micro):
        for samples, targets in step:
            outputs = model(samples.to(device_of(args)))
            step.backward(nn.functional.cross_entropy(outputs, targets.to(outputs.device)))
        optimizer.step()
        if args.device == "cuda":
            torch.cuda.synchronize()
        yield


def show_traffic(args: argparse.Namespace, model: nn.Module) -> None:
    """Print the bytes that the coordinator hands to Horovod's all-reduces."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    say(f"{edt_hvd.size()} workers, {weights:,} parameters\nbytes that a worker hands to the all-reduces:")
    for kind in KINDS:
        first, *_, later = counted(steps_of(kind, args, model, UNCOUNTED))
        gc.collect()
        say(
            f"  {kind:15} {later['gradients']:12,} a step ({later['gradients'] / weights:.2f} a parameter) "
            f"+ header {later['header']:,}; first step {first['gradients']:,}"
        )


def counted(steps: Iterator[None]) -> Iterator[dict[str, int]]:
    """The bytes of every step: gradients are reduced asynchronously, headers are not."""
    before = hvd.allreduce_async_, hvd.allreduce_
    nothing = {"gradients": 0, "header": 0}
    count = dict(nothing)

    def counting(what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counts(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
            count[what] += tensor.nbytes
            return call(tensor, *args, **options)

        return counts

    hvd.allreduce_async_, hvd.allreduce_ = counting("gradients", before[0]), counting("header", before[1])
    try:
        for _ in steps:
            yield dict(count)
            count.update(nothing)
    finally:
        hvd.allreduce_async_, hvd.allreduce_ = before


def show_times(args: argparse.Namespace, model: nn.Module) -> None:
    """Run the blocks in turns and print the ratios."""
    blocks: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    kinds = list(KINDS)
    for number in range(args.rounds + 1):
        for kind in kinds[number % 3 :] + kinds[: number % 3]:
            times = timed(steps_of(kind, args, model, UNCOUNTED + args.steps))
            gc.collect()
            if number > 0:
                blocks[kind].append(times)
    for kind in KINDS:
        say(f"{kind:15} median step {1000 * median(map(median, blocks[kind])):.2f} ms")
    say(f"longer than ring, {args.rounds} rounds of blocks of {args.steps} steps:")
    for kind in kinds[1:]:
        for what, of in (("medians of blocks", median), ("whole time of blocks", sum)):
            pairs = zip(blocks[kind], blocks["ring"], strict=True)
            longer = [100 * (of(exact) / of(ring) - 1) for exact, ring in pairs]
            say(f"  {kind:15} {what:20} {spread(longer, signed=True)}")


def timed(steps: Iterator[None]) -> list[float]:
    """Seconds of each counted step."""
    ends = [time.perf_counter() for _ in steps]
    return [after - before for before, after in pairwise(ends[UNCOUNTED - 1 :])]


def say(line: str) -> None:
    if edt_hvd.is_coordinator():
        print(line, flush=True)
