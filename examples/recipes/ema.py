"""Keep an exponential moving average of the weights, and test with it.

The average is a module in the state, so workers that join receive it with everything else.
"""

import copy

import edt_hvd
import torch
from digits_data import digits, network
from torch import nn

EPOCHS, DECAY = 8, 0.95

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
train_set, test_set = digits()
model = network().to(edt_hvd.device())
average = copy.deepcopy(model).requires_grad_(False)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), model)
loader = edt_hvd.ElasticDataLoader(train_set, effective_batch_size=128, micro_batch_size=16)
test_loader = edt_hvd.ElasticDataLoader(
    test_set, effective_batch_size=360, micro_batch_size=45, shuffle=False
)
state = edt_hvd.TorchState(model=model, average=average, optimizer=optimizer, loader=loader, epoch=0)


@torch.no_grad()
def follow() -> None:
    """Move the average towards the weights: after optimizer.step(), before the commit."""
    for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
        mean.lerp_(parameter, 1 - DECAY)


@torch.no_grad()
def accuracy(tested: nn.Module) -> float:
    """The share of the test set that a model gets right, the same on every worker."""
    mean = edt_hvd.Mean()
    for step in test_loader:
        for inputs, targets in step:
            mean.update(tested(inputs).argmax(1) == targets)
    return mean.compute()


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while state.epoch < EPOCHS:
        for step in state.loader:
            for inputs, targets in step:
                step.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
            follow()
            state.commit()
        state.epoch += 1
        found = accuracy(model), accuracy(average)
        if edt_hvd.is_coordinator():
            print(f"epoch {state.epoch}: accuracy {found[0]:.3f}, of the average {found[1]:.3f}")


train(state)
