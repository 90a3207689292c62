"""How long a newcomer's state takes to arrive, beside plain broadcasts of as many bytes.

    python benchmarks/transfer.py
    python benchmarks/transfer.py --gib 1 3 --rounds 9

Two workers of a static ``horovodrun`` over Gloo on this machine take turns: the state, as EDT brings it to a
worker that joins, then its tensors by ``horovod.torch.broadcast_``, all of them under way at once, as
``broadcast_parameters`` sends them. The receiver has no memory for either before: newcomers have none. The
state has tensors of 64 MiB, and many small ones beside them. Printed are seconds, and the first over the
second, with the spread.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import horovod.torch as hvd
import torch
from edt_hvd.state.transfer import broadcast_state
from spread import spread

MATRIX = 2**26
"""Bytes of a large tensor."""

SMALL, SMALL_BYTES = 200, 2**12
"""Small tensors, and the bytes of each."""

Tree = dict[str, torch.Tensor]


def make(gib: float, new: Callable[..., torch.Tensor]) -> Tree:
    """A state of that size."""
    large = max(1, int(gib * 2**30) // MATRIX)
    tree = {f"large.{number}": new(MATRIX // 4, dtype=torch.float32) for number in range(large)}
    return tree | {f"small.{number}": new(SMALL_BYTES // 4, dtype=torch.float32) for number in range(SMALL)}


def elastic(own: Tree | None, gib: float) -> Tree:
    """As EDT brings it."""
    received: Tree | None = broadcast_state(own, 0, own is not None)
    return received or {}


def plain(own: Tree | None, gib: float) -> Tree:
    """As Horovod broadcasts it."""
    tree = own or make(gib, torch.empty)
    handles = [hvd.broadcast_async_(each, root_rank=0, name=name) for name, each in tree.items()]
    for handle in handles:
        hvd.synchronize(handle)
    return tree if own is None else {}


def work(gib: float, rounds: int) -> None:
    """What a worker does; rank 0 prints the seconds."""
    hvd.init()
    torch.set_num_threads(1)
    is_root = hvd.rank() == 0
    own = make(gib, torch.ones) if is_root else None
    found: dict[str, list[float]] = {"elastic": [], "plain": []}
    for number in range(rounds + 1):
        for send in (elastic, plain) if number % 2 else (plain, elastic):
            hvd.barrier()
            started = time.perf_counter()
            received = send(own, gib)
            hvd.barrier()
            if number:  # the first one opens connections
                found[send.__name__].append(time.perf_counter() - started)
            assert is_root or bool((received["large.0"] == 1).all())
            del received
    if is_root:
        print(json.dumps(found), flush=True)
    hvd.shutdown()


def measure(gib: float, rounds: int) -> None:
    """Print the figures of one size."""
    command = [
        *(Path(sys.executable).with_name("horovodrun"), "-np", "2", "--network-interface", "lo", "--gloo"),
        *(sys.executable, __file__, "--gib", str(gib), "--rounds", str(rounds), "--worker"),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HOROVOD_LOG_LEVEL": "fatal"}
    done = subprocess.run(
        list(map(str, command)),
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line[line.index("{") :] for line in done.stdout.splitlines() if '"elastic"' in line]
    if done.returncode != 0 or len(lines) != 1:
        sys.exit(f"horovodrun ended with exit {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    found = json.loads(lines[0])
    for name, seconds in found.items():
        low, high = min(seconds), max(seconds)
        print(f"{gib:g} GiB  {name:8} median {median(seconds):6.2f} s  {low:.2f} to {high:.2f} s")
    ratios = [own / peer for own, peer in zip(found["elastic"], found["plain"], strict=True)]
    print(f"{gib:g} GiB  elastic over plain  {spread([100 * ratio for ratio in ratios])}")
    print(json.dumps({"gib": gib, "ratio": median(ratios), **found}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="A newcomer's state, beside a plain broadcast.")
    parser.add_argument("--gib", type=float, nargs="+", default=[1.0, 3.0], help="sizes of the state")
    parser.add_argument("--rounds", type=int, default=7, help="after one that is not counted")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for gib in args.gib:
        (work if args.worker else measure)(gib, args.rounds)


if __name__ == "__main__":
    main()
