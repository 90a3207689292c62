"""Step time of an EDT loop against a plain static Horovod loop that does the same work.

    edt-launch --min-np 2 --max-np 2 benchmarks/steady_state.py
    edt-launch --min-np 1 --max-np 1 benchmarks/steady_state.py --device cuda --workers 1 --width 4096

Both loops are in the same processes and take turns, one block of steps each, so that whatever else the
machine does meets both alike. Model, number of samples, micro-batches and optimizer are the same; the plain
loop is `hvd.DistributedOptimizer` with `backward_passes_per_step`, the other one commits its state after
every step. Both reduce in float32; what exact reduction adds is in `exact.py step`. Steps are timed on the
coordinator.

On a GPU, workers without a device of their own share one, and collectives take far longer than on several
(`shared_gpu`); one worker alone shows what the loop itself adds.

Printed is how much longer EDT takes, pair by pair of blocks: once with the median step of each block, once
with the block's whole time, in which rare costs such as full snapshots show.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median

import edt_hvd
import horovod.torch as hvd
import shared_gpu
import torch
from spread import spread
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Step time of EDT against plain Horovod.")
parser.add_argument("--pairs", type=int, default=80, help="pairs of blocks, after one that is not counted")
parser.add_argument("--steps", type=int, default=15, help="optimizer steps of a block")
parser.add_argument("--micro", type=int, default=150, help="samples of a micro-batch; sets the step's time")
parser.add_argument("--passes", type=int, default=2, help="micro-batches of a worker in a step")
parser.add_argument("--width", type=int, default=512, help="width of the model; sets its number of weights")
parser.add_argument("--workers", type=int, default=2, help="the effective batch is shared out among them")
parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
args = parser.parse_args()

FEATURES, CLASSES = 256, 10


def network() -> nn.Sequential:
    """The model, with the same weights every time."""
    torch.manual_seed(0)
    hidden = [layer for _ in range(2) for layer in (nn.Linear(args.width, args.width), nn.ReLU())]
    layers = nn.Linear(FEATURES, args.width), nn.ReLU(), *hidden, nn.Linear(args.width, CLASSES)
    return nn.Sequential(*layers).to(device)


def samples(count: int) -> TensorDataset:
    """Random samples, the same on every worker."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, FEATURES, generator=generator)
    return TensorDataset(inputs, torch.randint(CLASSES, (count,), generator=generator))


loss_of = nn.CrossEntropyLoss()


def plain_steps() -> Iterator[None]:
    """Plain Horovod's loop; one optimizer step for every `next`."""
    model = network()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        named_parameters=[(f"plain.{name}", parameter) for name, parameter in model.named_parameters()],
        backward_passes_per_step=args.passes,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    dataset = samples(hvd.size() * args.micro * args.passes * args.steps)
    sampler: torch.utils.data.DistributedSampler[int] = torch.utils.data.DistributedSampler(
        dataset, hvd.size(), hvd.rank()
    )
    loader = DataLoader(dataset, batch_size=args.micro, sampler=sampler)
    while True:
        for number, (inputs, targets) in enumerate(loader, start=1):
            (loss_of(model(inputs.to(device)), targets.to(device)) / args.passes).backward()
            if number % args.passes == 0:
                optimizer.step()
                optimizer.zero_grad()
                yield


def edt_steps(state: edt_hvd.TorchState) -> Iterator[None]:
    """EDT's loop; one optimizer step for every `next`."""
    while True:
        for step in state.loader:
            for inputs, targets in step:
                step.backward(loss_of(state.model(inputs.to(device)), targets.to(device)))
            state.optimizer.step()
            state.commit()
            yield


def timed(steps: Iterator[None]) -> list[float]:
    """Seconds of each step of a block."""
    hvd.barrier()
    times = [time.perf_counter()]
    for _ in range(args.steps):
        next(steps)
        if args.device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter())
    return [after - before for before, after in pairwise(times)]


@edt_hvd.elastic
def compare(state: edt_hvd.TorchState) -> None:
    """Run the blocks in turns and print the ratios."""
    if hvd.size() != args.workers:
        raise SystemExit(f"{hvd.size()} workers: both loops do the same work only with {args.workers}")
    loops: dict[str, Iterator[None]] = {"edt": edt_steps(state), "plain": plain_steps()}
    blocks: dict[str, list[list[float]]] = {"edt": [], "plain": []}
    for pair in range(args.pairs + 1):
        for name in ("edt", "plain") if pair % 2 else ("plain", "edt"):
            times = timed(loops[name])
            if pair > 0:
                blocks[name].append(times)
    if edt_hvd.is_coordinator():
        weights = sum(parameter.numel() for parameter in state.model.parameters())
        print(f"{hvd.size()} workers, {weights:,} weights, {args.pairs} pairs of {args.steps} steps each")
        for name in loops:
            print(f"{name:6} median step {1000 * median(map(median, blocks[name])):.2f} ms")
        print("EDT's step time against plain Horovod's:")
        for what, of in (("medians of blocks", median), ("whole time of blocks", sum)):
            longer = [100 * (ratio - 1) for ratio in ratios(blocks, of)]
            print(f"{what:22} {spread(longer, signed=True)}")


def ratios(blocks: dict[str, list[list[float]]], of: Callable[[list[float]], float]) -> list[float]:
    """EDT's figure divided by plain Horovod's, for every pair of blocks."""
    return [of(edt) / of(plain) for edt, plain in zip(blocks["edt"], blocks["plain"], strict=True)]


shared_gpu.separate()
edt_hvd.init()
torch.set_num_threads(1)
device = edt_hvd.device() if args.device == "cuda" else torch.device("cpu")
batch = args.workers * args.micro * args.passes
model = network()
optimizer = edt_hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), model, reduction="ring"
)
loader = edt_hvd.ElasticDataLoader(samples(batch * args.steps), batch, args.micro)
compare(edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader))
