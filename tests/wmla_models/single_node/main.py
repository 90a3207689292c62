"""One process: an ordinary PyTorch program."""

import argparse
import os

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.rand(64, 4)
y = x.sum(1, keepdim=True)
for epoch in range(args.epochs):
    for inputs, targets in zip(x.split(16), y.split(16), strict=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    print("epoch", epoch, "of", args.epochs, flush=True)
torch.save(model.state_dict(), os.path.join(os.environ["RESULT_DIR"], "model", "model.pth"))
