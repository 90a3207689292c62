"""Write curves for TensorBoard, without gaps or doubles when the coordinator changes.

Only the coordinator writes. After a resize it may be another worker: each begins a file of its own at the
step where it takes over, and what an earlier file has from there on is not shown.
"""

import os
from pathlib import Path

import edt_hvd
import torch
from digits_data import digits, network
from torch import nn
from torch.utils.tensorboard import SummaryWriter

EPOCHS = 8
FOLDER = Path(os.environ.get("EDT_MODEL_DIR", ".")) / "tensorboard"

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
train_set, _ = digits()
model = network().to(edt_hvd.device())
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), model)
loader = edt_hvd.ElasticDataLoader(train_set, effective_batch_size=128, micro_batch_size=16)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    writer = None
    if edt_hvd.is_coordinator():
        writer = SummaryWriter(FOLDER, purge_step=state.loader.total_steps_done)
    try:
        while state.epoch < EPOCHS:
            for step in state.loader:
                for inputs, targets in step:
                    step.backward(nn.functional.cross_entropy(model(inputs), targets))
                optimizer.step()
                if writer is not None:
                    writer.add_scalar("loss", step.loss, state.loader.total_steps_done - 1)
                state.commit()
            state.epoch += 1
    finally:  # the function is left by an exception when the number of workers changes
        if writer is not None:
            writer.close()


train(state)
