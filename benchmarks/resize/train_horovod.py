"""The training for Horovod's own elastic run loop, as its documentation has it."""

import time

import horovod.torch as hvd
from torch import nn
from torch.utils.data import DataLoader

import training

args = training.arguments()
hvd.init()
trace = training.Trace(args.folder)
model = training.network()
loss_of = nn.CrossEntropyLoss()
optimizer = hvd.DistributedOptimizer(training.optimizer_of(model), named_parameters=model.named_parameters())
dataset = training.samples()
sampler = hvd.elastic.ElasticSampler(dataset)
loader = DataLoader(dataset, args.batch, sampler=sampler)
state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0, steps=0)


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    while True:
        for inputs, targets in loader:
            time.sleep(args.delay)
            optimizer.zero_grad()
            loss_of(model(inputs), targets).backward()
            optimizer.step()
            state.sampler.record_batch(state.batch, args.batch)
            state.batch += 1
            state.steps += 1
            trace.add(state.steps, hvd.size())
            state.commit()
        state.epoch += 1
        state.batch = 0
        state.sampler.set_epoch(state.epoch)


train(state)
