"""A small elastic job that writes down everything it does.

traced.py OUT [--epochs N] [--delay S] [--loader-workers K] [--reduction ring] [--keep]

With a delay every step lasts S seconds more until a file OUT/hurry is there, and training goes on until then
unless N is given. The dataset of a worker hangs while there is a file OUT/hang.<pid> for it, and the worker
calls edt_hvd.leave() when there is a file OUT/leave.<pid>. Each worker appends to OUT/trace.<pid>.jsonl one
line a step, and to OUT/begun.<pid>.jsonl some before: what it has contributed if it is killed in between.
Rank 0 saves OUT/final.pt at the end, with --keep also what there was after each epoch.
"""

import argparse
import copy
import json
import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import Dataset

import edt_hvd

SAMPLES, BATCH, MICRO = 203, 32, 5


class Points(Dataset):
    """Samples are dicts, and say which they are."""

    def __init__(self, out: Path) -> None:
        self.hang = out / f"hang.{os.getpid()}"
        generator = torch.Generator().manual_seed(7)
        self.points = torch.randn(SAMPLES, 8, generator=generator)
        self.labels = (self.points.sum(1) > 0).long()

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict:
        while self.hang.exists():
            time.sleep(0.1)
        return {"x": self.points[index], "y": self.labels[index], "index": index}


def linger(seconds: float, hurry: Path) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not hurry.exists():
        time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--loader-workers", type=int, default=0)
    parser.add_argument("--reduction", default="exact")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    hurry = options.out / "hurry"
    epochs = options.epochs or 6

    edt_hvd.init()
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).to(edt_hvd.device())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    optimizer = edt_hvd.DistributedOptimizer(optimizer, model, reduction=options.reduction)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    loader = edt_hvd.ElasticDataLoader(
        Points(options.out),
        effective_batch_size=BATCH,
        micro_batch_size=MICRO,
        seed=5,
        num_workers=options.loader_workers,
    )
    state = edt_hvd.TorchState(
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        scaler=scaler,
        loader=loader,
        epoch=0,
        losses=[],
    )
    begun = (options.out / f"begun.{os.getpid()}.jsonl").open("a", buffering=1)
    trace = (options.out / f"trace.{os.getpid()}.jsonl").open("a", buffering=1)
    kept: list[dict] = []

    def goes_on() -> bool:
        is_between_epochs = loader.total_steps_done == state.epoch * len(loader)
        if options.delay and options.epochs is None and is_between_epochs:
            return edt_hvd.average({"is_slow": float(not hurry.exists())})["is_slow"] > 0
        return not is_between_epochs or state.epoch < epochs

    @edt_hvd.elastic
    def train(state) -> None:
        while goes_on():
            for step in state.loader:
                row = {
                    "epoch": state.epoch,
                    "step": step.index,
                    "size": edt_hvd.size(),
                    "rank": edt_hvd.rank(),
                    "samples": [],
                }
                begun.write(json.dumps(row) + "\n")
                for batch in step:
                    row["samples"] += batch["index"].tolist()
                    begun.write(json.dumps(row) + "\n")
                    loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
                    step.backward(loss, scaler=scaler)
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
                state.losses.append(step.loss)
                trace.write(json.dumps(row | {"device": os.environ.get("EDT_DEVICE")}) + "\n")
                linger(options.delay, hurry)
                if (options.out / f"leave.{os.getpid()}").exists():
                    edt_hvd.leave("the spot market")
                edt_hvd.report(loss=step.loss, total_steps=epochs * len(loader))
                state.commit()
            state.epoch += 1
            if options.keep:
                kept.append(copy.deepcopy({"model": model.state_dict(), "lr": scheduler.get_last_lr()}))

    train(state)
    mean_size = edt_hvd.average({"size": float(edt_hvd.size())}, weight=edt_hvd.rank() + 1)["size"]
    if edt_hvd.is_coordinator():
        final = {
            "model": model.state_dict(),
            "losses": state.losses,
            "lr": scheduler.get_last_lr(),
            "size": mean_size,
            "kept": kept,
        }
        torch.save(final, options.out / "final.pt")
        print("trained", flush=True)


if __name__ == "__main__":
    main()
