"""A script with Horovod's own elastic state, sampler and loop, on scikit-learn's handwritten digits.

`horovod_port_before.py` is written for Horovod alone, `horovod_port.py` for EDT as well. Three lines differ:

    diff examples/horovod_port_before.py examples/horovod_port.py
"""

import argparse

import edt_hvd
import horovod.torch as hvd
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--batch", type=int, default=32, help="samples of one step of one worker")
args = parser.parse_args()

hvd.init()
torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data / 16, dtype=torch.float32)
labels = torch.tensor(digits.target)
dataset = TensorDataset(images, labels)
sampler = hvd.elastic.ElasticSampler(dataset)
loader = DataLoader(dataset, batch_size=args.batch, sampler=sampler)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, batch=0)


@edt_hvd.elastic
def train(state):
    while state.epoch < args.epochs:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss_of(model(inputs), targets).backward()
            optimizer.step()
            state.sampler.record_batch(state.batch, args.batch)
            state.batch += 1
            state.commit()
        state.sampler.set_epoch(state.epoch + 1)
        state.epoch, state.batch = state.epoch + 1, 0
        if hvd.rank() == 0:
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
            print(f"epoch {state.epoch:2}  training accuracy {accuracy:.3f}", flush=True)


train(state)
