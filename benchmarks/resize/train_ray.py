"""The training for Ray Train: a resize starts all workers again, from a checkpoint every ten steps."""

import itertools
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
import torch.distributed as dist
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from torch import nn

import training

EVERY = 10
"""Steps between checkpoints."""


def train(config: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trace = training.Trace(Path(config["folder"]))
    model = training.network()
    loss_of = nn.CrossEntropyLoss()
    optimizer = training.optimizer_of(model)
    first = 1
    if (checkpoint := ray.train.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder) / "state.pt", weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["steps"] + 1
    parallel = nn.parallel.DistributedDataParallel(model)
    dataset = training.samples()
    batch, rank, size = 2 * config["batch"], dist.get_rank(), dist.get_world_size()
    batches = len(dataset) // batch
    for step in itertools.count(first):
        time.sleep(config["delay"])
        epoch, index = divmod(step - 1, batches)
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(epoch))
        inputs, targets = dataset[order[index * batch : (index + 1) * batch][rank::size]]
        optimizer.zero_grad()
        loss = loss_of(parallel(inputs), targets)
        loss.backward()
        optimizer.step()
        trace.add(step, size)
        if step % EVERY:
            continue
        with tempfile.TemporaryDirectory() as folder:
            if rank == 0:
                content = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "steps": step}
                torch.save(content, Path(folder) / "state.pt")
            saved = Checkpoint.from_directory(folder) if rank == 0 else None
            ray.train.report({"loss": loss.item()}, checkpoint=saved)


def main() -> None:
    args = training.arguments()
    # By default, a node that joins is not used for up to a minute.
    scaling = ScalingConfig(num_workers=(1, 4), elastic_resize_monitor_interval_s=5)
    run = RunConfig(
        name="run", storage_path=str(args.folder.absolute()), failure_config=FailureConfig(max_failures=100)
    )
    ray.cloudpickle.register_pickle_by_value(training)
    ray.init(os.environ["RAY_ADDRESS"])
    config = {"folder": str(args.folder.absolute()), "batch": args.batch, "delay": args.delay}
    TorchTrainer(train, train_loop_config=config, scaling_config=scaling, run_config=run).fit()


if __name__ == "__main__":
    main()
