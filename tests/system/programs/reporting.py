"""A training that reports and prints; its steps do nothing else."""

import torch
from torch import nn

import edt_hvd

edt_hvd.init()
torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.0), model)
loader = edt_hvd.ElasticDataLoader([torch.ones(3)] * 16, effective_batch_size=4, micro_batch_size=2)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while state.epoch < 3:
        for step in state.loader:
            for inputs in step:
                step.backward(model(inputs).square().mean())
            optimizer.step()
            edt_hvd.report(loss=1.5, total_steps=3 * len(loader))
            state.commit()
        state.epoch += 1
        if edt_hvd.is_coordinator():
            print(f"epoch {state.epoch} is done")


train(state)
