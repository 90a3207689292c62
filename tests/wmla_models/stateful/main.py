"""A script with state wherever scripts have it: executors are given it."""

import argparse
import dataclasses
import enum
import os
import random
import sys

sys.path.insert(0, os.path.join(os.environ["FABRIC_HOME"], "libs", "fabric.zip"))

import numpy as np
import table
import torch
import torch.nn.functional as F
from callbacks import Callback
from fabric_model import FabricModel
from parts import layers
from parts.points import Points

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--shift", type=float, default=0.5)
args = parser.parse_args()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
drawn = random.random(), np.random.rand(), torch.rand(1).item()
print("stateful: drawn", *drawn)

original = layers.activation
layers.activation = lambda inputs: original(inputs) + 0.1 * inputs

for row in table.ROWS:
    row.value += args.shift


def make_loss():
    factors = []

    def loss(output, target):
        return F.cross_entropy(output * factors[-1], target)

    return loss, factors


class Phase(enum.Enum):
    FAST = 0.05
    SLOW = 0.025


@dataclasses.dataclass
class Rates:
    phase: Phase = Phase.FAST
    used: list[float] = dataclasses.field(default_factory=list)

    def next(self, seen):
        self.phase = Phase.SLOW if self.used else Phase.FAST
        assert [field.name for field in dataclasses.fields(self)] == ["phase", "used"]
        self.used.append(self.phase.value / seen)
        return self.used[-1] * (2 if self.phase is Phase.SLOW else 1)


def datasets():
    print("stateful: drawn", *drawn)
    return Points(range(240)), Points(range(240, 280))


class Slowing(Callback):
    """Counts the epochs of two trainings; freezes a part of the model in the first."""

    def __init__(self):
        self.seen = 0
        self.rates = Rates()

    def on_epoch_begin(self, epoch):
        self.seen += 1
        rate = self.rates.next(self.seen)
        for group in self.params["optimizer"].param_groups:
            group["lr"] = rate
        if self.seen == 4:
            next(self.model.parameters()).requires_grad_(False)

    def on_train_end(self):
        with torch.no_grad():
            list(self.model.parameters())[-1].mul_(0.5)


def main():
    torch.manual_seed(3)
    model = torch.nn.Sequential(*(layers.KINDS[name]() for name in ("widen", "mix", "narrow"))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss, factors = make_loss()
    factors.append(1.5)
    program = FabricModel(model, datasets, loss, optimizer, user_callback=Slowing())
    program.train(args.epochs, 8, 4)
    factors.append(0.5)
    for row in table.ROWS:
        row.value *= -1
    assert not next(model.parameters()).requires_grad
    program.train(2, 8, 4)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    tuned = torch.nn.Sequential(*model[:-1], layers.KINDS["narrow"]()).to(device)
    second_optimizer = torch.optim.Adam(tuned.parameters(), lr=0.01)  # the first one is still there
    FabricModel(tuned, datasets, loss, second_optimizer).train(1, 8, 4)
    total = sum(parameter.double().sum().item() for part in (model, tuned) for parameter in part.parameters())
    print("stateful: ends with", total)


if __name__ == "__main__":
    main()
