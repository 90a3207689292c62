"""A small training in exact reduction that writes down which samples it uses.

train.py OUT [--epochs N] [--delay S] [--loader-workers K]

Every step lasts S seconds more, until a file OUT/hurry is there. Training ends after N epochs, or after the
first one at whose end a file OUT/end is there. Each worker appends to OUT/samples.<pid>.jsonl one line a
micro-batch, before it is computed, with the device that it has. At the end the coordinator writes a digest of
weights, buffers, optimizer state and losses, and the number of epochs, to OUT/final.json.
"""

import argparse
import json
import os
import time
from pathlib import Path

import edt_hvd
import torch
from edt_hvd.digests import digest
from edt_hvd.world.world import membership
from torch import nn
from torch.utils.data import Dataset

SAMPLES, BATCH, MICRO = 100, 24, 2
STEPS = -(-SAMPLES // BATCH)
"""Steps in an epoch; in the last one there is not a micro-batch for each of four workers."""


class Points(Dataset):
    """Noisy points, their classes and their numbers."""

    def __init__(self) -> None:
        self.points = torch.randn(SAMPLES, 16, generator=torch.Generator().manual_seed(1))
        self.classes = self.points[:, :4].argmax(1)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return self.points[index] + 0.1 * torch.randn(16), self.classes[index], index


def linger(seconds: float, hurry: Path) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not hurry.exists():
        time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=10**6)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--loader-workers", type=int, default=0)
    args = parser.parse_args()

    edt_hvd.init(deterministic=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
    loss_of = nn.CrossEntropyLoss()
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.AdamW(model.parameters(), lr=1e-3), model)
    loader = edt_hvd.ElasticDataLoader(
        Points(), BATCH, micro_batch_size=MICRO, seed=2, num_workers=args.loader_workers
    )
    state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, losses=[], is_last=False)
    samples = (args.out / f"samples.{os.getpid()}.jsonl").open("a", buffering=1)
    launch = os.environ.get("EDT_WORKER_TOKEN", "")[:8]  # tells one start of the job from the next

    @edt_hvd.elastic
    def train(state: edt_hvd.TorchState) -> None:
        while loader.epoch < args.epochs:
            for step in loader:
                for inputs, targets, indices in step:
                    line = {
                        "time": time.monotonic(),
                        "host": os.environ.get("HOROVOD_HOSTNAME", ""),
                        "device": os.environ.get("EDT_DEVICE", ""),
                        "world": f"{launch}.{membership()}",
                        "epoch": step.epoch,
                        "step": step.index,
                        "samples": indices.tolist(),
                    }
                    samples.write(json.dumps(line) + "\n")
                    step.backward(loss_of(model(inputs), targets))
                optimizer.step()
                state.losses.append(step.loss)
                linger(args.delay, args.out / "hurry")
                if step.index == STEPS - 1:  # seen by one, it counts for all; never undone
                    state.is_last = edt_hvd.average(float((args.out / "end").exists())) > 0
                state.commit()
            if state.is_last:
                break

    train(state)
    if edt_hvd.is_coordinator():
        found = (model.state_dict(), optimizer.state_dict(), state.losses)
        final = {"digest": digest(found), "epochs": loader.epoch}
        (args.out / "final.json").write_text(json.dumps(final))


if __name__ == "__main__":
    main()
