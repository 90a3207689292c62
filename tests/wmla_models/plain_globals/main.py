"""No logger; functions that live in the script and use what it has defined; a cap on workers."""

import os
import random

import storage
import torch
import torch.nn as nn
from fabric_model import FabricModel

NUM_EPOCHS = int(os.environ.get("NUM_EPOCHS", "8"))
MAX_NUM_WORKERS = 5
SEED = int(os.environ.get("SEED", "3"))
dataDir = os.environ["DATA_DIR"]
scale = 0.5
numbers = [random.Random(SEED).random() for _ in range(8)]


def normalize(x):
    return (x - 0.5) * scale


class Waves(torch.utils.data.Dataset):
    def __init__(self, begin, end):
        self.begin, self.end = begin, end

    def __len__(self):
        return self.end - self.begin

    def __getitem__(self, index):
        storage.wait()
        number = self.begin + index
        if not 0 <= index < len(self):
            raise IndexError(index)
        x = torch.arange(16) * numbers[number % 8] + number
        return normalize(torch.sin(x))[None], torch.tensor(number % 8)


def getDatasets():
    assert os.path.isdir(dataDir)
    return Waves(0, 210), Waves(210, 250)


def loss_function(output, target):
    return nn.functional.cross_entropy(output, target, label_smoothing=scale / 10)


def scaleup(epoch, max_engine_num):
    return 2 if epoch == 0 else max_engine_num


def main():
    torch.manual_seed(SEED)
    model = nn.Sequential(
        nn.Conv1d(1, 6, 3), nn.BatchNorm1d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 14, 8)
    )
    optimizer = torch.optim.AdamW(
        [{"params": model[0].parameters(), "lr": 0.003}, {"params": model[4].parameters()}]
    )
    FabricModel(model, getDatasets, loss_function, optimizer).train(
        NUM_EPOCHS, 5, MAX_NUM_WORKERS, scaleup_function=scaleup, checkpoint_freq=0
    )
    with open(os.path.join(os.environ["RESULT_DIR"], "done.txt"), "x") as file:
        file.write("trained once\n")


if __name__ == "__main__":
    main()
