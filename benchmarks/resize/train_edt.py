"""The training for EDT: the batch of a step is the same whatever the number of workers."""

import time

import edt_hvd
from torch import nn

import training

args = training.arguments()
edt_hvd.init()
trace = training.Trace(args.folder)
model = training.network()
loss_of = nn.CrossEntropyLoss()
optimizer = edt_hvd.DistributedOptimizer(training.optimizer_of(model), model)
loader = edt_hvd.ElasticDataLoader(training.samples(), 2 * args.batch, args.batch)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while True:
        for step in state.loader:
            time.sleep(args.delay)
            for inputs, targets in step:
                step.backward(loss_of(model(inputs), targets))
            optimizer.step()
            trace.add(loader.total_steps_done, edt_hvd.size())
            state.commit()


train(state)
