"""Classify scikit-learn's handwritten digits, on any and a changing number of workers.

The same script runs as each of:

    python examples/digits.py
    mpirun -np 3 python examples/digits.py
    horovodrun -np 2 python examples/digits.py
    edt-launch --min-np 1 --max-np 4 examples/digits.py
"""

import argparse
import time

import edt_hvd
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

parser = argparse.ArgumentParser(description="Train a small CNN on scikit-learn's handwritten digits.")
parser.add_argument("--epochs", type=int, default=12, help="passes over the training set")
parser.add_argument("--batch", type=int, default=96, help="samples of one optimizer step, over all workers")
parser.add_argument("--lr", type=float, default=0.05, help="the highest learning rate of the schedule")
parser.add_argument("--delay", type=float, default=0.0, help="artificial seconds of work a step")
args = parser.parse_args()

# Data: 1797 images of 8x8 pixels, shuffled once; every fifth one is for the test.
torch.manual_seed(0)
digits = load_digits()
order = torch.randperm(len(digits.target))
images = torch.tensor(digits.images, dtype=torch.float32)[order].unsqueeze(1)
images = (images - images.mean()) / images.std()
labels = torch.tensor(digits.target)[order]
is_test = torch.arange(len(labels)) % 5 == 0
train_set = TensorDataset(images[~is_test], labels[~is_test])
test_images, test_labels = images[is_test], labels[is_test]

# Model: the same on every worker, and deterministic, so that its bits do not depend on their number.
# A step is twelve micro-batches, so 1, 2, 3 and 4 workers get equal shares.
edt_hvd.init(deterministic=True)
model = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
    *(nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten()),
    *(nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10)),
).to(edt_hvd.device())
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
optimizer = edt_hvd.DistributedOptimizer(optimizer, model)
loader = edt_hvd.ElasticDataLoader(train_set, args.batch, micro_batch_size=-(-args.batch // 12), seed=0)
total_steps = args.epochs * len(loader)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps, pct_start=0.1)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, schedule=schedule, loader=loader, epoch=0)


@torch.no_grad()
def test(when: str) -> None:
    """Each worker tests its share of the images; the coordinator prints the mean over all of them."""
    share = slice(edt_hvd.rank(), None, edt_hvd.size())
    right = model(test_images[share].to(edt_hvd.device())).argmax(1).cpu() == test_labels[share]
    mean = edt_hvd.Mean()
    mean.update(right)
    accuracy = mean.compute()
    edt_hvd.report(accuracy=accuracy)
    if edt_hvd.is_coordinator():
        print(f"{when}accuracy {accuracy:.3f}", flush=True)


@edt_hvd.elastic
def train(state):
    while state.epoch < args.epochs:
        for step in state.loader:  # one optimizer step: `batch` samples, whatever the number of workers
            for inputs, targets in step:  # this worker's micro-batches of it
                outputs = model(inputs.to(edt_hvd.device()))
                step.backward(loss_of(outputs, targets.to(edt_hvd.device())))
                time.sleep(args.delay / step.micro_batches)
            optimizer.step()
            schedule.step()
            edt_hvd.report(loss=step.loss, total_steps=total_steps)
            state.commit()
        state.epoch += 1
        test(f"epoch {state.epoch:2}  ")
    test("")


train(state)
