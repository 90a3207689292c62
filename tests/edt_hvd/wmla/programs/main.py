"""A program as people have them: all in the script, strict arguments, a logger that cannot be pickled."""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.getenv("FABRIC_HOME"), "libs", "fabric.zip"))

import torch
import torch.nn.functional as F  # noqa: N812
from callbacks import Callback
from edtcallback import EDTLoggerCallback
from fabric_model import FabricModel
from torch import nn

print("script runs")
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--workers", type=int, default=5)
parser.add_argument("--custom", action="store_true")
parser.add_argument("--again", action="store_true")
parser.add_argument("--fail", action="store_true")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 36, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        x = F.dropout(torch.flatten(x, 1), training=self.training)
        return F.log_softmax(self.fc(x), dim=1)


class Digits(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.rand(count, 1, 8, 8, generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        if args.fail:
            raise RuntimeError("no such file: digit")
        return self.images[index], int(self.images[index].sum()) % 10


def datasets():
    print("datasets made")
    return Digits(90, 0), Digits(23, 1)


def step_train(model, data, eva, train_loader, fn_args):
    optimizer = model.get_optimizer()
    optimizer.zero_grad()
    inputs, labels = data
    outputs = model(inputs)
    loss = model.get_loss_function()(outputs, labels)
    loss.backward()
    return eva(outputs, labels), loss


class Rates(Callback):
    def on_epoch_begin(self, epoch):
        if epoch:
            for group in self.params["optimizer"].param_groups:
                group["lr"] *= 0.5
        print("epoch begins", epoch)


def main():
    torch.manual_seed(1)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    custom = {"fn_step_train": step_train} if args.custom else {}
    edt = FabricModel(
        model,
        datasets,
        F.nll_loss,
        optimizer,
        driver_logger=EDTLoggerCallback(),
        user_callback=[Rates()],
        **custom,
    )
    edt.train(args.epochs, 8, args.workers)
    if args.again:
        edt.train(1, 8, args.workers)
    total = sum(parameter.double().sum().item() for parameter in model.parameters())
    print("after", optimizer.param_groups[0]["lr"], total)


if __name__ == "__main__":
    main()
