"""A small training whose sums are exact in float32: its bits agree whatever the order, unless FLAW spoils it.

verified.py {none,operator,outside,split} [--steps N]
"""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import Dataset, random_split

import edt_hvd

SAMPLES, BATCH, MICRO = 64, 8, 2

parser = argparse.ArgumentParser()
parser.add_argument("flaw", choices=["none", "operator", "outside", "split"])
parser.add_argument("--steps", type=int, default=100)
options = parser.parse_args()


@torch.library.custom_op("flawed::noisy", mutates_args=())
def noisy(values: torch.Tensor) -> torch.Tensor:
    """Multiplies by what no seed determines; torch is not told so."""
    return values * float(os.urandom(1)[0])


noisy.register_autograd(lambda ctx, gradient: noisy(gradient))


class Points(Dataset):
    def __init__(self) -> None:
        self.points = torch.randint(-4, 5, (SAMPLES, 3), generator=torch.Generator().manual_seed(1)).float()

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.points[index]


edt_hvd.init()
model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
for parameter in model.parameters():
    nn.init.constant_(parameter, 0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=2**-6)
optimizer = edt_hvd.DistributedOptimizer(optimizer, model)
dataset = Points() if options.flaw != "split" else random_split(Points(), [0.75, 0.25])[0]
loader = edt_hvd.ElasticDataLoader(dataset, BATCH, micro_batch_size=MICRO)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)
last_gradients: list[torch.Tensor] = []


@edt_hvd.elastic
def train(state) -> None:
    while loader.total_steps_done < options.steps:
        for step in state.loader:
            for points in step:
                outputs = model(points)
                if options.flaw == "operator":
                    outputs = noisy(outputs)
                step.backward((outputs * points[:, 0]).mean())
            if options.flaw == "outside":
                gradients = [parameter.grad.clone() for parameter in model.parameters()]
                for parameter, last in zip(model.parameters(), last_gradients, strict=False):
                    parameter.grad.add_(last)
                last_gradients[:] = gradients
            optimizer.step()
            state.commit()
            if loader.total_steps_done == options.steps:
                break


train(state)
