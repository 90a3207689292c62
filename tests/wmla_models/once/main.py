"""What scripts do before `train()` that must happen once: files, folders, downloads, archives, seeds.

A callback changes a variable on which the loss depends.
"""

import argparse
import json
import logging
import os
import shutil
import time
import zipfile
from urllib.request import urlretrieve

import storage
import torch
from callbacks import Callback
from fabric_model import FabricModel
from torchvision import datasets, transforms

RESULT_DIR, DATA_DIR = os.environ["RESULT_DIR"], os.environ["DATA_DIR"]

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()

logging.basicConfig(filename=RESULT_DIR + "/train.log", level=logging.INFO)
log = logging.getLogger("once")
log.info("the script begins")
with open(RESULT_DIR + "/args.json", "x") as file:
    json.dump(vars(args), file)
os.mkdir(RESULT_DIR + "/out")
os.makedirs(RESULT_DIR + "/" + str(time.time_ns()))
shutil.rmtree("outputs", ignore_errors=True)
os.mkdir("outputs")
with open(DATA_DIR + "/count", "a") as file:
    file.write("one\n")
urlretrieve("file://" + DATA_DIR + "/pictures.zip", os.getcwd() + "/dataset.zip")
zipfile.ZipFile("dataset.zip").extractall(DATA_DIR + "/d")
torch.manual_seed(args.seed)


class Pictures(datasets.ImageFolder):
    def __getitem__(self, index):
        storage.wait()
        return super().__getitem__(index)


def load():
    log.info("data sets")  # where the executors run, logging is not configured
    return Pictures(DATA_DIR + "/d/train", transforms.ToTensor()), None


scale = 1.0


class Scaling(Callback):
    def on_epoch_begin(self, epoch):
        global scale
        scale *= 1.25


def loss(output, target):
    return torch.nn.functional.cross_entropy(output, target) * scale


model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(432, 2), torch.nn.Dropout(0.1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
FabricModel(model, load, loss, optimizer, user_callback=[Scaling()]).train(args.epochs, 16, 3)
assert scale == 1.25**args.epochs
log.info("the script ends")
print("once: the script ends")
