"""Train the last layer alone at first, then unfreeze the rest with a learning rate of its own.

A worker that joins later begins with one parameter group; `prepare` adds the other one before it loads the
state.
"""

from typing import Any

import edt_hvd
import torch
from digits_data import digits, network
from torch import nn

EPOCHS, UNFROZEN = 6, 2

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
train_set, _ = digits()
model = network().to(edt_hvd.device())
model[0].requires_grad_(False)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.Adam(model[2].parameters(), lr=0.01), model)
loader = edt_hvd.ElasticDataLoader(train_set, effective_batch_size=128, micro_batch_size=16)


def unfreeze(values: Any) -> None:
    """Add the first layer to the optimizer, if it is time and it is not there yet."""
    if values.epoch >= UNFROZEN and len(optimizer.param_groups) == 1:
        model[0].requires_grad_(True)
        optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.001})


state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0, prepare=unfreeze)


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while state.epoch < EPOCHS:
        unfreeze(state)
        for step in state.loader:
            for inputs, targets in step:
                step.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
            state.commit()
        state.epoch += 1


train(state)
if edt_hvd.is_coordinator():
    print(f"loss {state.loader.summary.loss:.3f}")
