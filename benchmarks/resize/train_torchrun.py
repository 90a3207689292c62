"""The training for torchrun: it saves a checkpoint every step, since a resize starts all workers anew."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

import training

args = training.arguments()
dist.init_process_group("gloo")
trace = training.Trace(args.folder)
model = training.network()
loss_of = nn.CrossEntropyLoss()
optimizer = training.optimizer_of(model)
checkpoint = args.folder / "checkpoint.pt"
steps = epoch = 0
if checkpoint.exists():
    saved = torch.load(checkpoint, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    steps, epoch = saved["steps"], saved["epoch"]
dist.barrier()  # nobody saves the next one while another still reads this one
parallel = nn.parallel.DistributedDataParallel(model)
dataset = training.samples()
sampler = DistributedSampler[int](dataset)
loader = DataLoader(dataset, args.batch, sampler=sampler)

while True:
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        time.sleep(args.delay)
        optimizer.zero_grad()
        loss_of(parallel(inputs), targets).backward()
        optimizer.step()
        steps += 1
        trace.add(steps, dist.get_world_size())
        if dist.get_rank() == 0:
            content = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(content | {"steps": steps, "epoch": epoch}, beside := checkpoint.with_suffix(".new"))
            beside.rename(checkpoint)
    epoch += 1
