"""Two loaders: a labelled and an unlabelled set, whose gradients add up in each optimizer step."""

from collections.abc import Iterator

import edt_hvd
import torch
from digits_data import digits, network
from torch import nn

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
model = network().to(edt_hvd.device())
train_set, other_set = digits()
optimizer = edt_hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=1e-3), model)
state = edt_hvd.TorchState(
    model=model,
    optimizer=optimizer,
    labelled=edt_hvd.ElasticDataLoader(train_set, effective_batch_size=128, micro_batch_size=16, seed=0),
    unlabelled=edt_hvd.ElasticDataLoader(other_set, effective_batch_size=64, micro_batch_size=8, seed=1),
    epoch=0,
)


def endless(loader: edt_hvd.ElasticDataLoader) -> Iterator[edt_hvd.Step]:
    """Steps of one epoch after the other."""
    while True:
        yield from loader


def entropy(logits: torch.Tensor) -> torch.Tensor:
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    others = endless(state.unlabelled)
    while state.epoch < 5:
        for step in state.labelled:
            other = next(others)
            for inputs, targets in step:
                logits = model(inputs.to(edt_hvd.device()))
                step.backward(nn.functional.cross_entropy(logits, targets.to(edt_hvd.device())))
            for inputs, _ in other:
                other.backward(0.1 * entropy(model(inputs.to(edt_hvd.device()))))
            optimizer.step()
            state.commit()
        state.epoch += 1


train(state)
if edt_hvd.is_coordinator():
    print(f"loss {state.labelled.summary.loss:.4f}, entropy {state.unlabelled.summary.loss:.4f}")
