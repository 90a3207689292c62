"""A small elastic job for tests of the pool: counts its steps and writes down which device did them.

pooled.py OUT [--steps N] [--delay S]

Every step lasts S seconds. Each worker appends to OUT/<job>.<pid>.jsonl a line when it starts, one for each
step, and one when it leaves Python. A file OUT/hurry makes all jobs hurry, OUT/finish.<job> ends one of them
after its present step, and OUT/fail.<job> has it fail there.
"""

import argparse
import atexit
import json
import os
import time
from pathlib import Path

import edt_hvd
import torch
from torch import nn
from torch.utils.data import Dataset


class Points(Dataset):
    """64 points in four dimensions."""

    def __init__(self) -> None:
        self.points = torch.randn(64, 4, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.points[index]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--delay", type=float, default=0.1)
    options = parser.parse_args()
    job = os.environ["EDT_JOB_ID"]
    journal = (options.out / f"{job}.{os.getpid()}.jsonl").open("a", buffering=1)

    def write(kind: str, **content: object) -> None:
        row = {
            "kind": kind,
            "time": time.monotonic(),
            "job": job,
            "device": os.environ.get("EDT_DEVICE"),
            **content,
        }
        journal.write(json.dumps(row) + "\n")

    write("begin")
    atexit.register(write, "end")
    edt_hvd.init()
    torch.manual_seed(3)
    model = nn.Linear(4, 1)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model)
    loader = edt_hvd.ElasticDataLoader(Points(), effective_batch_size=16, micro_batch_size=4, seed=5)
    finish = options.out / f"finish.{job}"
    state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, done=0)

    @edt_hvd.elastic
    def train(state) -> None:
        while state.done < options.steps:
            for step in state.loader:
                for points in step:
                    step.backward(model(points).square().mean())
                optimizer.step()
                state.done += 1
                write("step", step=state.done, rank=edt_hvd.rank(), size=edt_hvd.size())
                if (options.out / f"fail.{job}").exists():
                    raise RuntimeError(f"step {state.done} fails")
                if not (options.out / "hurry").exists():
                    time.sleep(options.delay)
                edt_hvd.report(loss=step.loss, total_steps=options.steps)
                is_last = edt_hvd.average({"last": float(finish.exists())})["last"] > 0
                if is_last:
                    options.steps = state.done
                state.commit()
                if state.done >= options.steps:
                    return

    train(state)


if __name__ == "__main__":
    main()
