"""Bandwidth of the kernels as the library calls them, checks included, against memcpy.

A kernel's bytes are those that it reads and writes: 20 an element where it adds float32 to int64. The memcpy
beside it copies half as many, and so moves as many in all. Blocks of both take turns, on one thread. On a GPU
the kernels are Triton's, and memcpy is the device's.
"""

import argparse
import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from edt_hvd.reduction.fixed_point import arithmetic as fixed_point
from edt_hvd.reduction.fixed_point import cuda as fixed_point_cuda
from spread import spread

BLOCK_BYTES = {"cpu": 50e6, "cuda": 20e9}
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
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")


def run(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    if args.device == "cpu" and not fixed_point.NATIVE:
        print("the kernels are not built: this is the Python reference")
    for elements in map(int, args.elements):
        for make in (adding, reading):
            for total in (torch.int64, torch.int32):
                for other in (torch.float32, torch.bfloat16):
                    compare(make(elements, other, total, args.device), args)


def adding(elements: int, gradient: torch.dtype, total: torch.dtype, device: str) -> Kernel:
    """Multiply, round and add."""
    values = torch.randn(elements, generator=torch.Generator().manual_seed(0)).to(device, gradient)
    sums = torch.zeros(elements, dtype=total, device=device)
    largest = torch.zeros(1, dtype=torch.float64, device=device)

    def add() -> object:
        if device == "cuda":
            return fixed_point_cuda.accumulate(values, FACTOR, sums, LIMIT, largest)
        return fixed_point.accumulate(values, FACTOR, sums, LIMIT)

    return Kernel(f"{name(gradient)} added to {name(total)}", add, values.nbytes + 2 * sums.nbytes)


def reading(elements: int, out: torch.dtype, total: torch.dtype, device: str) -> Kernel:
    """Turn sums back into floats."""
    sums = torch.randint(-(2**30), 2**30, (elements,), dtype=total, device=device)
    values = torch.empty(elements, dtype=out, device=device)
    to_float = fixed_point_cuda.to_float if device == "cuda" else fixed_point.to_float
    return Kernel(
        f"{name(total)} to {name(out)}",
        lambda: to_float(sums, 1 / FACTOR, values),
        values.nbytes + sums.nbytes,
    )


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def memcpy(moved: int, device: str) -> Callable[[], object]:
    """A copy that reads and writes so many bytes in all."""
    source, target = (torch.ones(moved // 2, dtype=torch.uint8, device=device) for _ in range(2))
    if device == "cuda":
        return lambda: target.copy_(source)
    return lambda: ctypes.memmove(target.data_ptr(), source.data_ptr(), source.nbytes)


def compare(kernel: Kernel, args: argparse.Namespace) -> None:
    """Run the blocks in turns and print the ratios."""
    calls = min(1000, max(1, round(BLOCK_BYTES[args.device] / kernel.moved)))
    work = {"kernel": kernel.call, "memcpy": memcpy(kernel.moved, args.device)}
    seconds: dict[str, list[float]] = {"kernel": [], "memcpy": []}
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    for pair in range(args.pairs + 1):
        for which in ("kernel", "memcpy") if pair % 2 else ("memcpy", "kernel"):
            wait()
            began = time.perf_counter()
            for _ in range(calls):
                work[which]()
            wait()
            if pair > 0:
                seconds[which].append((time.perf_counter() - began) / calls)
    speed = {which: kernel.moved / median(each) / 1e9 for which, each in seconds.items()}
    shares = [100 * copy / ours for ours, copy in zip(seconds["kernel"], seconds["memcpy"], strict=True)]
    print(
        f"{kernel.name}: {kernel.moved / 1e6:.1f} MB a call, {speed['kernel']:.1f} GB/s beside memcpy's "
        f"{speed['memcpy']:.1f}\n    of memcpy's bandwidth: {spread(shares)}"
    )
