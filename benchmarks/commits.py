"""What a commit of a large model costs, and a full copy of it, beside bare copies of as many bytes.

    python benchmarks/commits.py
    python benchmarks/commits.py --device cpu --parameters 5e6

One process trains a model with AdamW for a few steps and commits after each. Full copies (`state.save()`)
are taken on their own: the first has to get its memory, which is pinned on a GPU machine; the others use it
again. Beside them a bare copy moves as many bytes from the device into memory of the same kind. The last line
of the output is a JSON object with all figures. `checkpoint.py` shows how often copies are taken.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import edt_hvd
import torch
from torch import nn

PIECE = 2**30
"""Bytes of a bare copy; as many copies are made as the state needs."""

parser = argparse.ArgumentParser(description="What commits of a large model cost.")
parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
parser.add_argument("--parameters", type=float, default=350e6, help="of the model, about")
parser.add_argument("--layers", type=int, default=24)
parser.add_argument("--steps", type=int, default=20, help="optimizer steps, each with a commit")
parser.add_argument("--copies", type=int, default=3, help="full copies after the first, and bare ones")
parser.add_argument("--samples", type=int, default=256, help="of a step, which sets its time")
args = parser.parse_args()

SIZE = int((args.parameters / args.layers) ** 0.5)


def resident() -> int:
    """Bytes of main memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def pinned_bytes() -> int | None:
    """Bytes of pinned memory that torch has got from the system; None where it does not say."""
    if args.device != "cuda" or not hasattr(torch.cuda, "host_memory_stats"):
        return None
    stats = torch.cuda.host_memory_stats()
    return int(stats.get("allocated_bytes.current", 0)) or None


def timed(function: Callable[[], object]) -> float:
    """Seconds of a call, with the GPU's part of it."""
    wait()
    started = time.perf_counter()
    function()
    wait()
    return time.perf_counter() - started


def wait() -> None:
    if args.device == "cuda":
        torch.cuda.synchronize()


def bare_copies(total: int, device: torch.device) -> list[float]:
    """Seconds of moving so many bytes to host memory that is there already, again and again."""
    piece = min(total, PIECE)
    source = torch.ones(piece, dtype=torch.uint8, device=device)
    target = torch.ones(piece, dtype=torch.uint8, pin_memory=args.device == "cuda")
    times = [timed(lambda: target.copy_(source, non_blocking=True)) for _ in range(args.copies)]
    return [seconds * total / piece for seconds in times]


def main() -> None:
    edt_hvd.init()
    device = edt_hvd.device() if args.device == "cuda" else torch.device("cpu")
    torch.manual_seed(0)
    with device:
        layers = [
            nn.Sequential(nn.Linear(SIZE, SIZE), nn.LayerNorm(SIZE), nn.ReLU()) for _ in range(args.layers)
        ]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(args.samples, SIZE, device=device)
    state = edt_hvd.TorchState(model=model, optimizer=optimizer, epoch=0)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    step()  # the optimizer gets its state
    parameters = sum(each.numel() for each in model.parameters())
    tensors = [each for part in optimizer.state.values() for each in part.values()]
    total = sum(each.nbytes for each in [*model.parameters(), *tensors])
    say(f"{parameters:,} parameters, AdamW, {total / 1e9:.2f} GB of state")
    before = resident()
    first = timed(state.sync)  # takes the first full copy
    memory, pinned = resident() - before, pinned_bytes()
    say(f"first full copy: {first:.2f} s; host memory: {memory / 1e9:.2f} GB")
    if pinned is not None:
        say(f"pinned memory that torch holds: {pinned / 1e9:.2f} GB")
    again = median(timed(state.save) for _ in range(args.copies))
    say(f"further ones: {again:.3f} s, {total / again / 1e9:.1f} GB/s")
    bare = median(bare_copies(total, device))
    say(f"bare copy of as much: {bare:.3f} s, {total / bare / 1e9:.1f} GB/s")
    steps, commits = zip(*((timed(step), timed(state.commit)) for _ in range(args.steps)), strict=True)
    usual, longest = median(commits), max(commits)
    say(f"steps of {1e3 * median(steps):.1f} ms")
    say(f"commits of {1e6 * usual:.0f} us, the longest {1e3 * longest:.2f} ms")
    figures = {
        "parameters": parameters,
        "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
        "state_bytes": total,
        "step_seconds": median(steps),
        "commit_seconds": usual,
        "commit_seconds_max": longest,
        "first_copy_seconds": first,
        "copy_seconds": again,
        "copy_gb_per_second": total / again / 1e9,
        "bare_copy_seconds": bare,
        "bare_copy_gb_per_second": total / bare / 1e9,
        "host_bytes_of_the_copy": memory,
        "pinned_bytes": pinned,
        "device_bytes": torch.cuda.max_memory_allocated() if args.device == "cuda" else None,
    }
    say(json.dumps(figures))


def say(line: str) -> None:
    print(line, flush=True)


main()
