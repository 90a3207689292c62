"""Steps and evaluation of one's own, and a learning rate that falls with the epochs."""

import argparse
import os

import storage
import torch
import torch.nn as nn
from callbacks import Callback
from edtcallback import EDTLoggerCallback
from fabric_model import FabricModel

MAX_NUM_WORKERS = 4
BATCH_SIZE = 8
device = "cuda" if torch.cuda.is_available() else "cpu"


class Clouds(torch.utils.data.Dataset):
    """Points about the corners of a cube; not a whole number of batches."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(8, (count,), generator=generator)
        corners = torch.stack([self.labels >> axis & 1 for axis in range(3)], dim=1)
        self.points = corners + 0.3 * torch.randn(count, 3, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        storage.wait()
        return self.points[index] + 0.01 * torch.randn(3), self.labels[index]


def getDatasets():
    print("getDatasets of process", os.getpid() > 0)
    return Clouds(187, seed=1), Clouds(44, seed=2)


def train_step(model, data, eva, train_loader, fn_args):
    inputs, labels = data
    inputs, labels = inputs.to(device), labels.to(device)
    optimizer = model.get_optimizer()
    criterion = model.get_loss_function()
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    accuracy = eva(outputs, labels)
    loss.backward()
    return accuracy, loss


def test(model, test_iter, fn_args):
    criterion = model.get_loss_function()
    total, count = 0.0, 0
    for inputs, labels in test_iter:
        outputs = model(inputs.to(device))
        total += criterion(outputs, labels.to(device)).item()
        count += 1
    return total / count


class LRScheduleCallback(Callback):
    def __init__(self, step, gamma):
        super().__init__()
        self.step = step
        self.gamma = gamma

    def on_epoch_begin(self, epoch):
        if epoch != 0 and epoch % self.step == 0:
            for group in self.params["optimizer"].param_groups:
                group["lr"] *= self.gamma
                print("learning rate", group["lr"], "from epoch", epoch)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 8)
        )

    def forward(self, x):
        return self.layers(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args, _ = parser.parse_known_args()
    torch.manual_seed(args.seed)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    edt_m = FabricModel(
        model,
        getDatasets,
        nn.CrossEntropyLoss(),
        optimizer,
        driver_logger=EDTLoggerCallback(),
        user_callback=[LRScheduleCallback(step=4, gamma=0.5)],
        enable_onnx=True,
        fn_step_train=train_step,
        fn_test=test,
    )
    edt_m.train(
        args.epochs,
        BATCH_SIZE,
        MAX_NUM_WORKERS,
        num_dataloader_threads=1,
        validation_freq=5,
        checkpoint_freq=0,
    )
    with open(os.path.join(os.environ["RESULT_DIR"], "done.txt"), "x") as file:
        file.write("trained once\n")


if __name__ == "__main__":
    main()
