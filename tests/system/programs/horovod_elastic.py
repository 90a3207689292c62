"""An elastic script as Horovod's documentation writes them; only the decorator is ours, if it is not plain.

horovod_elastic.py FOLDER [plain]

Every step lasts 50 ms more, until there is a file FOLDER/hurry, which ends training after its epoch.
FOLDER/began says that training has begun, FOLDER/size.N that the job has had N workers after a resize.
"""

import itertools
import sys
import time
from pathlib import Path

import horovod.torch as hvd
import torch
from torch import nn

if "plain" in sys.argv:
    elastic = hvd.elastic.run
else:
    from edt_hvd import elastic
folder = Path(sys.argv[1])

hvd.init()
torch.manual_seed(0)
points = torch.randn(160, 8)
dataset = torch.utils.data.TensorDataset(points, (points.sum(1) > 0).long())
sampler = hvd.elastic.ElasticSampler(dataset)
loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)
model = nn.Linear(8, 2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size()), named_parameters=model.named_parameters()
)
sizes: list[int] = []


def on_reset() -> None:
    sizes.append(hvd.size())
    (folder / f"size.{hvd.size()}").touch()


@elastic
def train(state) -> None:
    (folder / "began").touch()
    for state.epoch in itertools.count(state.epoch):  # noqa: B020 - Horovod's own idiom
        for batch, (inputs, targets) in enumerate(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            sampler.record_batch(batch, len(inputs))
            time.sleep(0 if (folder / "hurry").exists() else 0.05)
            state.commit()
        sampler.set_epoch(state.epoch + 1)
        state.commit()
        if hvd.allreduce(torch.tensor(float((folder / "hurry").exists())), name="hurry") > 0:
            break


state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0)
state.register_reset_callbacks([on_reset])
train(state)
if hvd.rank() == 0:
    print(f"resets {sizes} replicas {sampler.num_replicas}", flush=True)
