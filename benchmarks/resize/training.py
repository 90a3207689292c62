"""What the three training scripts have in common: arguments, data, model, and the record of steps."""

import argparse
import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

SAMPLES, FEATURES, CLASSES = 9_600, 64, 10


class Trace:
    """Where one worker writes down when it did which step, in a world of which size."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / f"trace.{os.getpid()}").open("a", buffering=1)

    def add(self, step: int, size: int) -> None:
        """Append one line: unix time in seconds, number of the optimizer step from 1, number of workers."""
        self._file.write(f"{time.time():.6f} {step} {size}\n")


def arguments() -> argparse.Namespace:
    """The arguments of every one of the scripts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="where records and checkpoints go")
    parser.add_argument("--batch", type=int, default=48, help="samples of a step of one of two workers")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds of sleep at the start of a step")
    parser.add_argument("--startup", type=float, default=0.0, help="seconds of sleep when the script starts")
    args = parser.parse_args()
    time.sleep(args.startup)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return args


def network() -> nn.Sequential:
    """The model, 43,000 weights."""
    hidden = [layer for _ in range(2) for layer in (nn.Linear(128, 128), nn.ReLU())]
    return nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), *hidden, nn.Linear(128, CLASSES))


def optimizer_of(model: nn.Module) -> torch.optim.SGD:
    """SGD with momentum, so that there is some optimizer state to hand over."""
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def samples() -> TensorDataset:
    """Random samples, the same on every worker."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
    return TensorDataset(inputs, torch.randint(CLASSES, (SAMPLES,), generator=generator))
