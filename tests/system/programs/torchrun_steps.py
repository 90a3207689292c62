"""Counts steps with torch.distributed alone; rank 0 keeps the count in a file, which it replaces."""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

steps, until = Path(sys.argv[1]), Path(sys.argv[2])
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
count = int(steps.read_text()) if steps.exists() else 0
print(f"rank {rank} of {size} devices {os.environ.get('CUDA_VISIBLE_DEVICES')}", flush=True)
ends = torch.zeros(1)
while not ends:
    count += 1
    if rank == 0:
        steps.with_suffix(".new").write_text(str(count))
        steps.with_suffix(".new").replace(steps)
        ends[0] = until.exists()
    dist.broadcast(ends, 0)
    time.sleep(0.05)
dist.destroy_process_group()
