"""Two kinds of pictures told apart by the last layer of a network whose other layers are frozen."""

import argparse
import json
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import datasets, transforms

path = os.path.join(os.getenv("FABRIC_HOME"), "libs", "fabric.zip")
sys.path.insert(0, path)
print("fabric is taken from its archive")

import storage
from edtcallback import EDTLoggerCallback
from fabric_model import FabricModel

parser = argparse.ArgumentParser()
parser.add_argument("--batchsize", type=int, default=64)
parser.add_argument("--numWorker", type=int, default=100)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--seed", type=int, default=1)
args, unknown = parser.parse_known_args()
print("args:", args, "unknown:", unknown)

dataDir = os.environ["DATA_DIR"]
resultDir = os.environ["RESULT_DIR"]

with open("config.json") as file:  # beside the script, which runs in its folder
    hyper = json.load(file)
with open(os.path.join(resultDir, "_submitted_code", "images_fc", "config.json")) as file:
    assert json.load(file) == hyper


class Pictures(datasets.ImageFolder):
    def __getitem__(self, index):
        storage.wait()
        return super().__getitem__(index)


def getDatasets():
    print("create dataset")
    augmented = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    train = Pictures(os.path.join(dataDir, "train"), augmented)
    val = Pictures(os.path.join(dataDir, "val"), transforms.ToTensor())
    return train, val


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.bn2 = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))  # raw logits


def main():
    torch.manual_seed(args.seed)
    model = Net()
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.fc = nn.Linear(model.fc.in_features, 2)
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=hyper["learning_rate"], momentum=hyper["momentum"])
    edt_m = FabricModel(model, getDatasets, F.nll_loss, optimizer, driver_logger=EDTLoggerCallback())
    edt_m.train(args.epochs, args.batchsize, args.numWorker, checkpoint_freq=5)
    with open(os.path.join(resultDir, "done.txt"), "x") as file:
        file.write("trained once\n")


if __name__ == "__main__":
    main()
