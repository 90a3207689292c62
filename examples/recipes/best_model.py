"""Keep the best model of all epochs, and save it once it is known.

The copy is in the state: whoever is the coordinator at the end has it, whatever became of the first one.
"""

import copy
import os
from pathlib import Path

import edt_hvd
import torch
from digits_data import digits, network
from torch import nn

EPOCHS = 8

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
train_set, test_set = digits()
model = network().to(edt_hvd.device())
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), model)
loader = edt_hvd.ElasticDataLoader(train_set, effective_batch_size=128, micro_batch_size=16)
test_loader = edt_hvd.ElasticDataLoader(
    test_set, effective_batch_size=360, micro_batch_size=45, shuffle=False
)
best_model = copy.deepcopy(model).requires_grad_(False)
state = edt_hvd.TorchState(
    model=model, optimizer=optimizer, loader=loader, best_model=best_model, best=-1.0, epoch=0
)


@torch.no_grad()
def accuracy() -> float:
    """The share of the test set that the model gets right, the same on every worker."""
    mean = edt_hvd.Mean()
    for step in test_loader:
        for inputs, targets in step:
            mean.update(model(inputs).argmax(1) == targets)
    return mean.compute()


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while state.epoch < EPOCHS:
        for step in state.loader:
            for inputs, targets in step:
                step.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
            state.commit()
        found = accuracy()
        if found > state.best:
            state.best = found
            state.best_model.load_state_dict(model.state_dict())
        state.epoch += 1


train(state)
if edt_hvd.is_coordinator():
    path = Path(os.environ.get("EDT_MODEL_DIR", ".")) / "best.pt"
    torch.save(state.best_model.state_dict(), path)
    print(f"accuracy {state.best:.3f}: {path}")
