"""A program for torchrun: it saves once an epoch, and writes down every step that counts."""

import io
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

EPOCHS, STEPS = 1000, 4


def main(results: Path, *, in_memory: bool) -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    checkpoint, first = results / "checkpoint.pt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        first = saved["epoch"]
    for epoch in range(first, EPOCHS):
        for step in range(STEPS):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            if rank == 0:
                with (results / "steps").open("a") as file:
                    print(epoch, step, size, os.environ["TORCHELASTIC_RESTART_COUNT"], file=file)
            time.sleep(0.05)
        if rank == 0:
            state, new = {"model": model.state_dict(), "epoch": epoch + 1}, results / "new.pt"
            if in_memory:
                torch.save(state, buffer := io.BytesIO())
                new.write_bytes(buffer.getvalue())
            else:
                torch.save(state, new)
            new.rename(checkpoint)
        over = torch.tensor([(results / "hurry").exists()], dtype=torch.int)
        dist.all_reduce(over)
        if over.item():
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), in_memory=sys.argv[2:] == ["in_memory"])
