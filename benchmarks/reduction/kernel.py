"""Bandwidth of the kernels as the library calls them, checks included, against memcpy.

A kernel's bytes are those that it reads and writes: 20 an element where it adds float32 to int64. The memcpy
beside it copies half as many, and so moves as many in all. Blocks of both take turns, on one thread.
"""

import argparse
import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from edt_hvd.reduction import fixed_point
from spread import spread

BLOCK_BYTES = 50e6
FACTOR, LIMIT = 2.0**20, 2.0**30  # no addend is beyond the limit


@dataclass(frozen=True)
class Kernel:
    """A kernel on tensors of its own.

    Attributes:
        moved: bytes that a call reads and writes.
    """

    name: str
    call: Callable[[], object]
    moved: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pairs", type=int, default=60, help="pairs of blocks, after one that is not counted"
    )
    parser.add_argument(
        "--elements", type=float, nargs="+", default=[2**16, 25e6], help="sizes of the tensors"
    )


def run(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    if not fixed_point.NATIVE:
        print("the kernels are not built: this is the Python reference")
    for elements in map(int, args.elements):
        for make in (adding, reading):
            for total in (torch.int64, torch.int32):
                for other in (torch.float32, torch.bfloat16):
                    compare(make(elements, other, total), args.pairs)


def adding(elements: int, gradient: torch.dtype, total: torch.dtype) -> Kernel:
    """Multiply, round and add."""
    values = torch.randn(elements, generator=torch.Generator().manual_seed(0)).to(gradient)
    sums = torch.zeros(elements, dtype=total)
    return Kernel(
        f"{name(gradient)} added to {name(total)}",
        lambda: fixed_point.accumulate(values, FACTOR, sums, LIMIT),
        values.nbytes + 2 * sums.nbytes,
    )


def reading(elements: int, out: torch.dtype, total: torch.dtype) -> Kernel:
    """Turn sums back into floats."""
    sums = torch.randint(-(2**30), 2**30, (elements,), dtype=total)
    values = torch.empty(elements, dtype=out)
    return Kernel(
        f"{name(total)} to {name(out)}",
        lambda: fixed_point.to_float(sums, 1 / FACTOR, values),
        values.nbytes + sums.nbytes,
    )


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def memcpy(moved: int) -> Callable[[], object]:
    """A copy that reads and writes so many bytes in all."""
    source, target = torch.ones(moved // 2, dtype=torch.uint8), torch.ones(moved // 2, dtype=torch.uint8)
    return lambda: ctypes.memmove(target.data_ptr(), source.data_ptr(), source.nbytes)


def compare(kernel: Kernel, pairs: int) -> None:
    """Run the blocks in turns and print the ratios."""
    calls = max(1, round(BLOCK_BYTES / kernel.moved))
    work = {"kernel": kernel.call, "memcpy": memcpy(kernel.moved)}
    seconds: dict[str, list[float]] = {"kernel": [], "memcpy": []}
    for pair in range(pairs + 1):
        for which in ("kernel", "memcpy") if pair % 2 else ("memcpy", "kernel"):
            began = time.perf_counter()
            for _ in range(calls):
                work[which]()
            if pair > 0:
                seconds[which].append((time.perf_counter() - began) / calls)
    speed = {which: kernel.moved / median(each) / 1e9 for which, each in seconds.items()}
    shares = [100 * copy / ours for ours, copy in zip(seconds["kernel"], seconds["memcpy"], strict=True)]
    print(
        f"{kernel.name}: {kernel.moved / 1e6:.1f} MB a call, {speed['kernel']:.1f} GB/s beside memcpy's "
        f"{speed['memcpy']:.1f}\n    of memcpy's bandwidth: {spread(shares)}"
    )
