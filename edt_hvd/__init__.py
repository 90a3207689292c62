"""Elastic training for PyTorch on Horovod: the library inside a training process.

import edt_hvd

edt_hvd.init()
model = Net().to(edt_hvd.device())
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader(dataset, effective_batch_size=256)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)

@edt_hvd.elastic
def train(state):
    while state.epoch < 10:
        for step in state.loader:
            for inputs, targets in step:
                step.backward(criterion(model(inputs), targets))
            optimizer.step()
            state.commit()
        state.epoch += 1

train(state)
"""

from edt_hvd import torchvision_cpu
from edt_hvd.collectives import barrier, broadcast, gather
from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.data.step import Step
from edt_hvd.elastic import elastic
from edt_hvd.errors import (
    CoordinatorLostError,
    EdtError,
    GradientError,
    NonFiniteGradientWarning,
    NotInitializedError,
    StateError,
)
from edt_hvd.initialization import adopt_horovod, init
from edt_hvd.metrics import Mean, average
from edt_hvd.progress.reporting import report
from edt_hvd.reduction.optimizer import DistributedOptimizer
from edt_hvd.state import TorchState
from edt_hvd.world.stages import heartbeat
from edt_hvd.world.world import (
    device,
    is_coordinator,
    leave,
    local_rank,
    local_size,
    rank,
    size,
)

adopt_horovod()
torchvision_cpu.define_missing_operators()

__all__ = [
    "CoordinatorLostError",
    "DistributedOptimizer",
    "EdtError",
    "ElasticDataLoader",
    "GradientError",
    "Mean",
    "NonFiniteGradientWarning",
    "NotInitializedError",
    "StateError",
    "Step",
    "TorchState",
    "average",
    "barrier",
    "broadcast",
    "device",
    "elastic",
    "gather",
    "heartbeat",
    "init",
    "is_coordinator",
    "leave",
    "local_rank",
    "local_size",
    "rank",
    "report",
    "size",
]
