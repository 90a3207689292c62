"""An elastic script for Horovod that knows nothing of this project.

plain_horovod.py FOLDER

Every step lasts 50 ms more until there is a file FOLDER/hurry and the job has two workers.
"""

import sys
import time
from pathlib import Path

import horovod.torch as hvd
import torch
from torch import nn

EPOCHS = 40
folder = Path(sys.argv[1])

hvd.init()
torch.manual_seed(0)
points = torch.randn(64, 8)
dataset = torch.utils.data.TensorDataset(points, (points.sum(1) > 0).long())
sampler = hvd.elastic.ElasticSampler(dataset)
loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)
model = nn.Linear(8, 2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
)


@hvd.elastic.run
def train(state) -> None:
    (folder / "began").touch()
    while state.epoch < EPOCHS:
        for batch, (inputs, targets) in enumerate(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            sampler.record_batch(batch, len(inputs))
            time.sleep(0 if (folder / "hurry").exists() and hvd.size() == 2 else 0.05)
            state.commit()
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()


state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0)
train(state)
print(f"rank {hvd.rank()} of {hvd.size()} after {state.epoch} epochs", flush=True)
