"""Classify MNIST with a small CNN, on any and a changing number of workers.

The same script, unchanged:

    python examples/mnist.py --data-dir data
    edt-launch --min-np 1 --max-np 4 examples/mnist.py --data-dir data

In an experiment of the job service, the data are in its source files folder, `$DATA_DIR`. The model is saved
as `mnist.pt` where the service hands it out, in `$EDT_MODEL_DIR`; without a service, in this folder.
"""

import argparse
import fcntl
import os
import sys
from pathlib import Path

import edt_hvd
import torch
from torch import nn
from torchvision import datasets, transforms

parser = argparse.ArgumentParser(description="Train a small CNN on MNIST.")
data_dir = Path(os.environ.get("DATA_DIR", "data"))
parser.add_argument("--data-dir", type=Path, default=data_dir, help="has or gets MNIST/raw")
parser.add_argument("--epochs", type=int, default=3, help="passes over the training set")
parser.add_argument("--batch", type=int, default=256, help="samples of one optimizer step, over all workers")
parser.add_argument("--lr", type=float, default=0.05, help="the highest learning rate of the schedule")
parser.add_argument("--loader-workers", type=int, default=0, help="processes that read and transform images")
args = parser.parse_args()


def mnist(train: bool, transform) -> datasets.MNIST:
    """Open the data set. The first worker on a host downloads it if needed, the others wait for that."""
    args.data_dir.mkdir(parents=True, exist_ok=True)
    with open(args.data_dir / "mnist.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return datasets.MNIST(args.data_dir, train, transform, download=True)
        except (RuntimeError, OSError) as error:
            files = "\n".join(f"    {name}" for name, _ in datasets.MNIST.resources)
            sys.exit(
                f"MNIST is not in {args.data_dir} and cannot be had ({str(error).partition(':')[0]}).\n"
                f"Put these files, packed or unpacked, into {args.data_dir.resolve()}/MNIST/raw\n{files}\n"
                "or run once with --data-dir where there is a network, and copy the directory."
            )


normalize = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.1307, 0.3081)])
augment = transforms.Compose([transforms.RandomAffine(degrees=8, translate=(0.08, 0.08)), normalize])
train_set, test_set = mnist(True, augment), mnist(False, normalize)

edt_hvd.init(deterministic=True)
device = edt_hvd.device()
torch.manual_seed(0)
model = nn.Sequential(
    *(nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU()),
    *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten()),
    *(nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10)),
).to(device)
loss_of = nn.CrossEntropyLoss()
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9), model)
loader = edt_hvd.ElasticDataLoader(train_set, args.batch, num_workers=args.loader_workers)
total_steps = args.epochs * len(loader)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=total_steps)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, schedule=schedule, loader=loader, epoch=0)


@torch.no_grad()
def test(when: str) -> None:
    """Each worker tests its share of the images; the coordinator prints the mean over all of them."""
    share = torch.utils.data.Subset(test_set, range(edt_hvd.rank(), len(test_set), edt_hvd.size()))
    batches = torch.utils.data.DataLoader(share, batch_size=500)
    mean = edt_hvd.Mean()
    for images, labels in batches:
        mean.update(model(images.to(device)).argmax(1).cpu() == labels)
    accuracy = mean.compute()
    edt_hvd.report(accuracy=accuracy)
    if edt_hvd.is_coordinator():
        print(f"{when}accuracy {accuracy:.3f}", flush=True)


@edt_hvd.elastic
def train(state):
    while state.epoch < args.epochs:
        for step in state.loader:
            for inputs, targets in step:
                step.backward(loss_of(model(inputs.to(device)), targets.to(device)))
            optimizer.step()
            schedule.step()
            edt_hvd.report(loss=step.loss, total_steps=total_steps)
            state.commit()
        state.epoch += 1
        test(f"epoch {state.epoch:2}  ")
    test("")


train(state)
if edt_hvd.is_coordinator():
    torch.save(model.state_dict(), Path(os.environ.get("EDT_MODEL_DIR", ".")) / "mnist.pt")
