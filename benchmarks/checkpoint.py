"""What commits, snapshots and checkpoints cost: a loop with them against the same loop without.

    python benchmarks/checkpoint.py
    python benchmarks/checkpoint.py --parameters 25e6 --steps 120

Both loops train the same model with AdamW, in one process, and take turns, one block of steps each, so that
whatever else the machine does meets both alike. One commits after every step and writes checkpoints as often
as their cost allows; the other does not commit at all. Blocks are long, because checkpoints are rare.

Printed is how much longer the committing loop takes, pair by pair of blocks; and, by the clock inside that
loop, which part of the time is spent in commits, in snapshots and in writing. How often the last two happen
follows from the time of both loops, of which their shares are therefore taken.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import edt_hvd
import torch
from edt_hvd.state.checkpoint import writer as checkpoint_writer
from spread import spread
from torch import nn

parser = argparse.ArgumentParser(description="What commits, snapshots and checkpoints cost.")
parser.add_argument("--parameters", type=float, default=1e6, help="of the model, about")
parser.add_argument("--pairs", type=int, default=9, help="pairs of blocks, after one that is not counted")
parser.add_argument("--steps", type=int, default=200, help="optimizer steps of a block")
parser.add_argument("--samples", type=int, default=256, help="of a step, which sets its time")
parser.add_argument("--interval", type=float, default=10.0, help="seconds between two checkpoints, at least")
args = parser.parse_args()

LAYERS = 4
SIZE = int((args.parameters / LAYERS) ** 0.5)


class Timed:
    """Adds up the seconds that calls of a function take."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.seconds = 0.0
        self.calls = 0

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        started = time.perf_counter()
        try:
            return self._function(*arguments)
        finally:
            self.seconds += time.perf_counter() - started
            self.calls += 1


class Loop:
    """A training of its own, with or without commits."""

    def __init__(self, commits: bool) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(*(nn.Sequential(nn.Linear(SIZE, SIZE), nn.ReLU()) for _ in range(LAYERS)))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.inputs = torch.randn(args.samples, SIZE)
        self.state = edt_hvd.TorchState(model=self.model, optimizer=self.optimizer, epoch=0)
        self.commit = Timed(self.state.commit if commits else lambda: None)
        self.state.save = self.save = Timed(self.state.save)  # type: ignore[method-assign]

    def block(self) -> float:
        """Seconds of a block of steps."""
        started = time.perf_counter()
        for _ in range(args.steps):
            self.optimizer.zero_grad()
            self.model(self.inputs).square().mean().backward()
            self.optimizer.step()
            self.commit()
        return time.perf_counter() - started


def measure() -> None:
    plain, committing = Loop(commits=False), Loop(commits=True)
    committing.state.sync()
    written: list[checkpoint_writer.Outcome] = []
    writer = committing.state._checkpointing._checkpoints._writer  # type: ignore[union-attr]
    tell = writer._tell
    writer._tell = lambda outcome: (written.append(outcome), tell(outcome))[1]
    longer, total, both = [], 0.0, 0.0
    for pair in range(args.pairs + 1):
        if pair == 1:  # the first snapshot has to get its memory
            committing.commit.seconds = committing.save.seconds = 0.0
            written.clear()
        order = (plain, committing) if pair % 2 else (committing, plain)
        times = {loop: loop.block() for loop in order}
        if pair > 0:
            longer.append(100 * (times[committing] / times[plain] - 1))
            total += times[committing]
            both += sum(times.values())
    weights = sum(parameter.numel() for parameter in plain.model.parameters())
    step = 1000 * total / args.pairs / args.steps
    print(f"{weights:,} weights, AdamW, {args.pairs} pairs of {args.steps} steps of {step:.1f} ms")
    print(f"committing loop against the other: {spread(longer, signed=True)}")
    save, seconds = committing.save.seconds, committing.commit.seconds
    print(f"in commits but for snapshots {100 * (seconds - save) / total:.3f} % of the time")
    print(f"in snapshots {100 * save / both:.3f} %")
    wall = median(outcome.cost.seconds for outcome in written) if written else 0.0
    processor = sum(outcome.cost.processor for outcome in written)
    print(f"{len(written)} checkpoints of {wall:.2f} s each; on a processor {100 * processor / both:.3f} %")


with tempfile.TemporaryDirectory() as folder:
    os.environ["EDT_CHECKPOINT_DIR"] = str(Path(folder) / "checkpoint")
    os.environ["EDT_CHECKPOINT_INTERVAL"] = str(args.interval)
    edt_hvd.init()
    measure()
