"""Digits that are downloaded first; a strict command line; a model exported at the end."""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from callbacks import Callback
from edtcallback import EDTLoggerCallback
from elog import ELog
from fabric_model import FabricModel
from storage import wait

MAX_NUM_WORKERS = 4
DATA_DIR = os.getenv("DATA_DIR", "/tmp")
RESULT_DIR = os.getenv("RESULT_DIR", "/tmp")
print("digits: the script begins")


class Digits(torch.utils.data.Dataset):
    """Downloads itself, as torchvision's datasets do."""

    def __init__(self, root, train, download):
        self.file = os.path.join(root, "digits", "train.pt" if train else "test.pt")
        if download and not os.path.exists(self.file):
            self.download(240 if train else 40)
        self.images, self.labels = torch.load(self.file)

    def download(self, count):
        print("Downloading", os.path.basename(self.file))
        generator = torch.Generator().manual_seed(count)
        labels = torch.randint(10, (count,), generator=generator)
        images = torch.rand(count, 1, 8, 8, generator=generator) * 0.5
        images[torch.arange(count), 0, labels % 8, labels // 8 * 4] += 1
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        beside = "%s.%d" % (self.file, os.getpid())
        torch.save((images, labels), beside)
        os.rename(beside, self.file)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        wait()
        return self.images[index], int(self.labels[index])


def getDatasets():
    return Digits(DATA_DIR, train=True, download=True), Digits(DATA_DIR, train=False, download=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.fc1 = nn.Linear(8 * 6 * 6, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv(x)).flatten(1)
        x = F.dropout(F.relu(self.fc1(x)), training=self.training)
        return F.softmax(self.fc2(x), dim=1)


class ExportCallback(Callback):
    def __init__(self):
        super().__init__()

    def on_train_begin(self):
        print("training begins")

    def on_epoch_end(self, epoch, save_model=False):
        with ELog.open() as log:
            log.text("epoch %d, of a worker, has ended" % epoch)
        if save_model and epoch == self.params["epochs"] - 1:
            folder = os.path.join(RESULT_DIR, "model")
            os.makedirs(folder, exist_ok=True)
            torch.save(self.model.state_dict(), os.path.join(folder, "trained_model.pt"))
            print("exported by one worker")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    edt_m = FabricModel(
        model,
        getDatasets,
        F.cross_entropy,
        optimizer,
        driver_logger=EDTLoggerCallback(),
        user_callback=[ExportCallback()],
    )
    edt_m.train(args.epochs, args.batch_size, MAX_NUM_WORKERS)
    print("digits: the script ends")
    with open(os.path.join(RESULT_DIR, "done.txt"), "x") as file:
        file.write("trained once\n")


if __name__ == "__main__":
    main()
