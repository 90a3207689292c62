"""What a worker that was forked for `edt torchrun` does besides its program.

It stands at a *gate* where it first touches a GPU, calls `init_process_group` or asks
`is_torchelastic_launched`, as Lightning does before it looks for its checkpoint, until it is admitted to
its world. In rank 0, once a resize is due, it *holds* where the next training step begins after a
checkpoint of the program has been written: at the forward pass of `DistributedDataParallel` in training
mode, else before the optimizer's step; in a program that has taken no optimizer step yet, before the next
forward pass or collective operation. There all that belongs to the checkpoint is done. The others wait
for rank 0's gradients then, so that nobody takes a step that would have to be repeated.

The warm server calls `install` before it imports what the program needs, and a worker calls `begin`.
"""

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from edt_hvd.torchrun.launcher_link import LauncherLink
from edt_hvd.torchrun.saves import Saves
from edt_messages import messages

COLLECTIVES = (
    *("all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all"),
    *("all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object"),
    *("monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter"),
    "scatter_object_list",
)

PROGRESS_INTERVAL = 0.1
"""Seconds between two reports of the steps done."""


class Worker:
    """One worker of a world: its link to the launcher, and how far its program is."""

    def __init__(self, link: LauncherLink, rank: int, size: int, epochs: int | None) -> None:
        self._link = link
        self._pid = os.getpid()
        self._rank = rank
        self._size = size
        self._epochs = epochs
        """Hold where every so many epochs begin, not after checkpoints; None for checkpoints."""
        self._is_admitted = False
        self._is_at_checkpoint = False
        self._has_stepped = False
        self._steps = 0
        self._epoch: int | None = None
        self._told_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether a resize waits for a checkpoint."""
        return self._link.is_due and self._is_here

    @property
    def _is_here(self) -> bool:
        """Whether this is the worker, not a process that it has forked."""
        return os.getpid() == self._pid

    def pass_gate(self) -> None:
        """Wait until this worker is admitted to its world."""
        if not self._is_admitted and self._is_here:
            self._is_admitted = True
            import torch._dynamo  # noqa: F401 - the first optimizer does, while the job stands still

            self._link.ask(messages.AtRendezvous(0))

    def save(self, is_saving: bool) -> None:
        """A checkpoint is being written, or has been."""
        if self._is_here:
            self._is_at_checkpoint = not is_saving and self._epochs is None
            self._link.send(messages.Saving(is_saving))

    def come_to_step(self) -> None:
        """The program is about to begin or to take an optimizer step."""
        self._has_stepped = True
        self._leave_checkpoint()

    def come_to_work(self) -> None:
        """The program is about to compute or to talk to others."""
        if not self._has_stepped:
            self._leave_checkpoint()

    def _leave_checkpoint(self) -> None:
        if self._is_at_checkpoint and self._is_here:
            self.hold_if_due()
            self._is_at_checkpoint = False

    def hold_if_due(self) -> None:
        """Wait to be ended, if a resize is due and this is rank 0: everybody else waits for it then."""
        if self._rank == 0 and self.is_due:
            self._link.ask(messages.Held())

    def finish_step(self) -> None:
        """The program has taken an optimizer step."""
        self._steps += 1
        now = time.monotonic()
        if (
            self._rank == 0
            and self._is_here
            and (self._steps == 1 or now - self._told_at >= PROGRESS_INTERVAL)
        ):
            self._told_at = now
            step = self._link.step + self._steps
            self._link.send(messages.Progress(step, self._epoch, self._size))

    def begin_epoch(self, epoch: int) -> None:
        """The program's sampler begins an epoch."""
        self._epoch = epoch
        if self._epochs is not None and epoch % self._epochs == 0 and self._is_here:
            self.hold_if_due()


current: Worker | None = None
"""This process's; None in a warm server, and where there is no `edt torchrun`."""

_saves = Saves()


def install() -> None:
    """Wrap what the program may call. Nothing of it has an effect before `begin`."""
    _wrap(torch.distributed, "init_process_group", lambda worker: worker.pass_gate())
    _wrap(torch.distributed, "is_torchelastic_launched", lambda worker: worker.pass_gate())
    _wrap(torch.cuda, "_lazy_init", lambda worker: worker.pass_gate())
    for name in COLLECTIVES:
        _wrap(torch.distributed, name, lambda worker: worker.come_to_work())
    forward: Callable[..., Any] = DistributedDataParallel.forward

    @functools.wraps(forward)
    def forward_after_checkpoint(self: Any, *arguments: Any, **named: Any) -> Any:
        if current is not None and self.training and torch.is_grad_enabled():
            current.come_to_step()
        return forward(self, *arguments, **named)

    DistributedDataParallel.forward = forward_after_checkpoint  # type: ignore[method-assign]
    sampler = torch.utils.data.distributed.DistributedSampler
    begin_epoch = sampler.set_epoch

    @functools.wraps(begin_epoch)
    def set_epoch(self: Any, epoch: int) -> None:
        if current is not None:
            current.begin_epoch(epoch)
        begin_epoch(self, epoch)

    sampler.set_epoch = set_epoch  # type: ignore[method-assign]
    DistributedDataParallel.__del__ = release_before_group  # type: ignore[attr-defined]
    _saves.install()


def release_before_group(model: DistributedDataParallel) -> None:
    """Release what holds the model's process group in C++, while the model still refers to the group.

    A group's last reference has to be one of Python's, which gives up the GIL: the destructor joins threads
    that may be waiting for it. The reducer's does not give it up, and a program that destroys its process
    group before its model could hang (torch 2.13).
    """
    for name in ("logger", "reducer"):
        model.__dict__.pop(name, None)


def _wrap(module: Any, name: str, before: Callable[[Worker], None]) -> None:
    function = getattr(module, name)

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if current is not None:
            before(current)
        return function(*arguments, **named)

    setattr(module, name, wrapped)


def begin() -> None:
    """Become the worker that the environment describes."""
    global current
    environment = os.environ
    link = LauncherLink(
        environment["EDT_COORDINATOR"], environment["EDT_WORKER_TOKEN"], int(environment["EDT_WORKER"])
    )
    at, _, count = environment.get("EDT_RESIZE_AT", "checkpoint").partition(":")
    epochs = int(count or 1) if at == "epoch" else None
    worker = current = Worker(link, int(environment["RANK"]), int(environment["WORLD_SIZE"]), epochs)
    _saves.on_change = worker.save
    register_optimizer_step_pre_hook(lambda *_: worker.come_to_step())
    register_optimizer_step_post_hook(lambda *_: worker.finish_step())
    register_optimizer_step_post_hook(lambda *_: _saves.forget_memory())
    _come_to_work_at_forward(worker)
    if file := environment.get("TORCHELASTIC_ERROR_FILE"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)  # on a host that shares no folders
    if (mode := environment.get("EDT_NUMA_BINDING")) is not None:
        _bind(mode, int(environment["LOCAL_RANK"]))


def _come_to_work_at_forward(worker: Worker) -> None:
    """Notice forward passes until the first optimizer step; hooks make every module a little slower."""
    handles: list[Any] = [register_module_forward_pre_hook(lambda *_: worker.come_to_work())]

    def remove(*_: Any) -> None:
        while handles:
            handles.pop().remove()

    handles.append(register_optimizer_step_pre_hook(remove))


def _bind(mode: str, gpu: int) -> None:
    """Bind this process to cores near its GPU, as torchrun does."""
    from torch.numa import binding

    options = binding.NumaOptions(affinity_mode=binding.AffinityMode(mode))
    binding._maybe_apply_numa_binding_to_current_process(gpu_index=gpu, numa_options=options)
