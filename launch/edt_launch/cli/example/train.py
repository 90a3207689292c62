"""Tell two spirals apart: the jobs of `edt up --demo`. Runs on any and a changing number of workers."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import TensorDataset

import edt_hvd

parser = argparse.ArgumentParser(description="Train a small network to tell two spirals apart.")
parser.add_argument("--epochs", type=int, default=12, help="passes over the points; one is ten steps")
parser.add_argument("--delay", type=float, default=0.5, help="artificial seconds of work a step")
args = parser.parse_args()

torch.manual_seed(0)
count = 960
angle = 3 * torch.pi * torch.rand(count).sqrt()
labels = torch.arange(count) % 2
turned = angle + torch.pi * labels
points = torch.stack([turned.cos(), turned.sin()], 1) * angle.unsqueeze(1) / 5 + 0.02 * torch.randn(count, 2)

edt_hvd.init()
model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
model = model.to(edt_hvd.device())
loss_of = nn.CrossEntropyLoss()
optimizer = edt_hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), model)
loader = edt_hvd.ElasticDataLoader(TensorDataset(points, labels), 96, micro_batch_size=8, seed=0)
total_steps = args.epochs * len(loader)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    """Train; `state` says how far that is."""
    while state.epoch < args.epochs:
        for step in state.loader:
            for inputs, targets in step:
                outputs = model(inputs.to(edt_hvd.device()))
                step.backward(loss_of(outputs, targets.to(edt_hvd.device())))
                time.sleep(args.delay / step.micro_batches)
            optimizer.step()
            edt_hvd.report(loss=step.loss, total_steps=total_steps)
            state.commit()
        state.epoch += 1
        if edt_hvd.is_coordinator():
            print(f"epoch {state.epoch:2}  loss {step.loss:.3f}  {edt_hvd.size()} workers", flush=True)


train(state)
