"""Validate after every epoch, lower the learning rate on a plateau, and stop when nothing gets better.

What the decision follows from is in the state: every worker decides the same, also one that joins later.
"""

import edt_hvd
import torch
from digits_data import digits, network
from torch import nn

EPOCHS, PATIENCE = 30, 3

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
train_set, test_set = digits()
model = network().to(edt_hvd.device())
optimizer = edt_hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=3e-2), model)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
loader = edt_hvd.ElasticDataLoader(train_set, effective_batch_size=256, micro_batch_size=32)
test_loader = edt_hvd.ElasticDataLoader(
    test_set, effective_batch_size=360, micro_batch_size=45, shuffle=False
)
loss_of = nn.CrossEntropyLoss(reduction="none")
state = edt_hvd.TorchState(
    model=model, optimizer=optimizer, plateau=plateau, loader=loader, epoch=0, best=float("inf"), waited=0
)


@torch.no_grad()
def validate() -> float:
    """The mean loss over the test set, the same on every worker."""
    mean = edt_hvd.Mean()
    for step in test_loader:
        for inputs, targets in step:
            mean.update(loss_of(model(inputs), targets))
    return mean.compute()


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while state.epoch < EPOCHS and state.waited < PATIENCE:
        for step in state.loader:
            for inputs, targets in step:
                step.backward(loss_of(model(inputs), targets).mean())
            optimizer.step()
            state.commit()
        found = validate()
        state.plateau.step(found)
        state.waited = 0 if found < state.best else state.waited + 1
        state.best = min(state.best, found)
        state.epoch += 1
        if edt_hvd.is_coordinator():
            print(
                f"epoch {state.epoch}: {state.loader.summary.loss:.4f} in training, {found:.4f} in the test"
            )


train(state)
