"""The training of `gpu_jobs.py`: the same bits for every number of workers, over NCCL and over Gloo.

    edt-launch --min-np 1 --max-np 2 benchmarks/gpu_train.py FOLDER

The model always computes on --device. Over Gloo its weights stay in host memory and are copied for each pass,
so that the same gradients go another way: through the kernels of the CPU and Gloo instead of Triton's and
NCCL. Learning rate and momentum are powers of two, with which an optimizer's step rounds alike on both.

Each worker appends to FOLDER/trace.<pid> the unix time, the number and the world's size of every step, and
says in FOLDER/final.<rank>.json what it ended with. SIGUSR2 makes it print where all its threads are.
"""

import argparse
import faulthandler
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edt_hvd
import horovod.torch as hvd
import shared_gpu
import torch
from edt_hvd.digests import digest
from torch import nn
from torch.func import functional_call
from torch.utils.data import TensorDataset

FEATURES, CLASSES = 64, 10
BATCH, MICRO = 64, 16

HELD_BACK = 4_000_000_000
"""Clock cycles of a GPU, some two seconds."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A training on a GPU, or on the CPU.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--transport", choices=["nccl", "gloo"], default="nccl")
    parser.add_argument("--width", type=int, default=512, help="of the model; sets its number of weights")
    parser.add_argument("--steps", type=int, default=100, help="optimizer steps, in epochs of 16")
    parser.add_argument(
        "--delay", type=float, default=0.0, help="seconds of each step until FOLDER/hurry is there"
    )
    parser.add_argument(
        "--backwards", type=int, default=1, help="passes of a micro-batch; with 2, reductions overlap nothing"
    )
    parser.add_argument("--kill-rank", type=int, help="this one is killed inside a gradient's all-reduce")
    parser.add_argument("--kill-step", type=int, default=10, help="in which step")
    parser.add_argument("--kill-after", type=float, default=0.5, help="seconds after that has begun")
    return parser.parse_args()


class Offloaded(nn.Module):
    """A model that computes on a GPU with weights and buffers that stay in host memory."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        super().__init__()
        self.model = model
        self._device = device

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Compute with copies, and keep what has become of the buffers."""
        parameters = {name: each.to(self._device) for name, each in self.model.named_parameters()}
        buffers = {name: each.to(self._device, copy=True) for name, each in self.model.named_buffers()}
        outputs = functional_call(self.model, (parameters, buffers), (inputs,))
        for name, buffer in self.model.named_buffers():
            buffer.copy_(buffers[name])
        return outputs


def network(width: int) -> nn.Module:
    """Linear layers, batch norm and dropout: sums, buffers and random numbers."""
    hidden = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1))
    return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), hidden, nn.Linear(width, CLASSES))


def samples(count: int) -> TensorDataset:
    """Random samples, the same on every worker."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, FEATURES, generator=generator)
    return TensorDataset(inputs, torch.randint(CLASSES, (count,), generator=generator))


def is_to_be_killed(args: argparse.Namespace, step: int) -> bool:
    """Whether this is the worker and the step, and it has not happened yet."""
    is_its_turn = step == args.kill_step and edt_hvd.rank() == args.kill_rank
    return is_its_turn and not (args.folder / "killed").exists()


def kill_inside_a_collective(folder: Path, seconds: float) -> None:
    """Have this process killed after it has begun the next gradient's all-reduce.

    On a GPU its part of the all-reduce is held back, so that the others are in NCCL's kernel and wait for it.
    """
    begin: Callable[..., Any] = hvd.allreduce_async_

    def killed_in(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        hvd.allreduce_async_ = begin
        if tensor.is_cuda:
            torch.cuda._sleep(HELD_BACK)
        handle = begin(tensor, *args, **options)
        threading.Thread(target=kill_later, args=(folder, seconds), daemon=True).start()
        return handle

    hvd.allreduce_async_ = killed_in


def kill_later(folder: Path, seconds: float) -> None:
    time.sleep(seconds)
    (folder / "killed").write_text(f"{os.getpid()} {time.time():.6f}")
    os.kill(os.getpid(), signal.SIGKILL)


def linger(seconds: float, hurry: Path) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not hurry.exists():
        time.sleep(0.01)


def main() -> None:
    args = arguments()
    faulthandler.register(signal.SIGUSR2, all_threads=True, chain=False)
    shared_gpu.separate()
    edt_hvd.init(deterministic=True)
    if args.device == "cuda" and args.transport == "nccl" and not hvd.nccl_built():
        raise SystemExit("Horovod was built without NCCL: 'edt doctor' says what to do")
    torch.manual_seed(0)
    device = edt_hvd.device() if args.device == "cuda" else torch.device("cpu")
    model = network(args.width)
    model = (
        Offloaded(model, device) if args.transport == "gloo" and device.type != "cpu" else model.to(device)
    )
    sgd = torch.optim.SGD(model.parameters(), lr=2.0**-6, momentum=0.5)
    optimizer = edt_hvd.DistributedOptimizer(sgd, model)
    loader = edt_hvd.ElasticDataLoader(samples(16 * BATCH), BATCH, MICRO, seed=3)
    state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)
    trace = (args.folder / f"trace.{os.getpid()}").open("a", buffering=1)

    @edt_hvd.elastic
    def train(state: edt_hvd.TorchState) -> None:
        while loader.total_steps_done < args.steps:
            for step in state.loader:
                linger(args.delay, args.folder / "hurry")
                is_victim = is_to_be_killed(args, loader.total_steps_done + 1)
                if is_victim:
                    kill_inside_a_collective(args.folder, args.kill_after)
                for inputs, targets in step:
                    outputs = model(inputs.to(device))
                    loss = nn.functional.cross_entropy(outputs, targets.to(device)) / args.backwards
                    for left in reversed(range(args.backwards)):
                        step.backward(loss, retain_graph=left > 0)
                if is_victim:
                    (args.folder / "too_late").touch()
                optimizer.step()
                trace.write(f"{time.time():.6f} {loader.total_steps_done} {edt_hvd.size()}\n")
                state.commit()
                if loader.total_steps_done == args.steps:
                    break

    train(state)
    found = {name: each.cpu() for name, each in model.state_dict().items()}
    found = {name.removeprefix("model."): each for name, each in found.items()}
    momenta = [sgd.state[each]["momentum_buffer"].cpu() for each in model.parameters()]
    final = {"digest": digest([found, momenta]), "size": edt_hvd.size(), "steps": loader.total_steps_done}
    (args.folder / f"final.{edt_hvd.rank()}.json").write_text(json.dumps(final))


if __name__ == "__main__":
    main()
