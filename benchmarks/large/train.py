"""A GPT-2-like model on random tokens, trained by EDT or, with --plain, by an ordinary loop in one process.

Every worker appends a line of JSON to a file of its own after each step: the time, the number of the step,
the size of the world, and the most memory that it has had. After the first step of a world of two, they
also move as many bytes as the state has with a bare broadcast.
"""

import argparse
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import edt_hvd
import horovod.torch as hvd
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset

PIECE = 2**25
"""Bytes of a call of the bare copies."""


class Block(nn.Module):
    """Attention and a perceptron, each behind a norm and beside a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 64)
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of shape (batch, length, width), as what it returns."""
        batch, length, width = x.shape
        parts = self.attention(self.before_attention(x)).split(width, dim=2)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(found.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Transformer(nn.Module):
    """A GPT-2-like model; the embedding of the tokens is the output's, too."""

    def __init__(self, width: int, layers: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for parameter in (self.tokens.weight, self.positions.weight):
            nn.init.normal_(parameter, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The loss of predicting each token from those before it."""
        x = self.tokens(tokens[:, :-1]) + self.positions.weight[: tokens.shape[1] - 1]
        found = self.head(self.norm(self.blocks(x)))
        return functional.cross_entropy(found.flatten(0, 1), tokens[:, 1:].flatten())


class Texts(Dataset[torch.Tensor]):
    """Random tokens, the same for the same index."""

    def __init__(self, vocabulary: int, length: int) -> None:
        self._vocabulary, self._length = vocabulary, length

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(index)
        return torch.randint(self._vocabulary, (self._length + 1,), generator=generator)


def peak() -> int:
    """Bytes of memory, at most, that this process has had at a time."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def arguments() -> argparse.Namespace:
    """The command line, which `large.py` makes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parameters", type=float, required=True)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--reduction", default="exact")
    parser.add_argument("--checkpoints", action="store_true")
    parser.add_argument("--validate", action="store_true", help="average a value between step and commit")
    parser.add_argument("--plain", type=int, default=0, help="steps of an ordinary loop")
    return parser.parse_args()


def width_of(parameters: float, layers: int, vocabulary: int, length: int) -> int:
    """The width with which the model has about so many parameters; a multiple of 64."""
    return next(
        width
        for width in range(64, 1_000_000, 64)
        if 12 * layers * width**2 + (vocabulary + length) * width >= parameters
    )


args = arguments()
if not args.checkpoints:
    os.environ.pop("EDT_CHECKPOINT_DIR", None)
LAYERS = 12
width = width_of(args.parameters, LAYERS, args.vocabulary, args.length)
torch.manual_seed(0)
torch.set_num_threads(1)
base = peak()
model = Transformer(width, LAYERS, args.vocabulary, args.length)
count = sum(parameter.numel() for parameter in model.parameters())
dataset = Texts(args.vocabulary, args.length)
optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
trace = (args.folder / f"trace.{os.getpid()}").open("a", buffering=1)
MICRO_BATCHES, SAMPLES = 4, 1


def tell(**values: Any) -> None:
    """Append a line."""
    trace.write(json.dumps({"time": time.time(), "peak": peak() - base, "parameters": count} | values) + "\n")


def plain() -> None:
    """The ordinary loop, with as many micro-batches a step."""
    tell()
    for step in range(args.plain):
        for number in range(MICRO_BATCHES):
            tokens = dataset[step * MICRO_BATCHES + number][None]
            (model(tokens) / MICRO_BATCHES).backward()
        optimizer.step()
        optimizer.zero_grad()
        tell(step=step + 1, size=1, parts={})


def bytes_of(tensors: Iterator[torch.Tensor]) -> int:
    """Of all memory that these tensors are in, once each."""
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


def parts(state: edt_hvd.TorchState) -> dict[str, int]:
    """Bytes of what stays in memory from step to step."""
    reducer: Any = optimizer._edt_reducer  # type: ignore[attr-defined]
    last = state._rollback.snapshots.last
    leaves = [] if last is None else torch.utils._pytree.tree_leaves(last.tree)
    states = (each for own in optimizer.state.values() for each in own.values())
    buckets = bytes_of(each for pair in ((b.total, b.flat) for b in reducer._buckets) for each in pair)
    return {
        "parameters": bytes_of(iter(model.parameters())),
        "optimizer": bytes_of(each for each in states if isinstance(each, torch.Tensor)),
        "buckets": buckets,
        "snapshot": bytes_of(each for each in leaves if isinstance(each, torch.Tensor)),
    }


def bare_broadcast() -> float:
    """Seconds that Horovod takes to broadcast as many bytes as the state has, to memory that is new."""
    piece = torch.ones(PIECE, dtype=torch.uint8)
    hvd.broadcast_(piece, root_rank=0, name="bare.first")
    started = time.perf_counter()
    for _ in range(-(-12 * count // PIECE)):
        if hvd.rank() != 0:
            piece = torch.empty(PIECE, dtype=torch.uint8)  # so large that malloc gets it from the system
        hvd.broadcast_(piece, root_rank=0, name="bare")
    return time.perf_counter() - started


def copy() -> float:
    """Seconds that a copy of as many bytes within memory takes."""
    source, target = torch.ones(2, PIECE, dtype=torch.uint8)
    started = time.perf_counter()
    for _ in range(-(-12 * count // PIECE)):
        target.copy_(source)
    return time.perf_counter() - started


if args.plain:
    plain()
    raise SystemExit

edt_hvd.init()
kinds: dict[str, dict[str, Any]] = {
    "ring": {"reduction": "ring"},
    "exact": {"reduction": "exact"},
    "exact32": {"reduction": "exact", "integer_bits": 32},
}
optimizer = edt_hvd.DistributedOptimizer(optimizer, model, **kinds[args.reduction])
loader = edt_hvd.ElasticDataLoader(dataset, MICRO_BATCHES * SAMPLES, SAMPLES)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    """Train until the job is ended."""
    at_start = True
    tell()
    for step in state.loader:
        for tokens in step:
            step.backward(model(tokens))
        optimizer.step()
        if args.validate:
            edt_hvd.average(0.0)
        state.commit()
        tell(step=state.loader.total_steps_done, size=edt_hvd.size(), parts=parts(state))
        if at_start and edt_hvd.size() == 2:
            tell(broadcast=bare_broadcast(), copy=copy())
        at_start = False


train(state)
