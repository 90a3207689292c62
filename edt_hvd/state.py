"""The training state: what a worker needs to go on where the others are.

Two kinds of copy protect it. A *boundary* is taken at every commit and holds what is small: plain values,
the states of schedulers, scalers and loaders, the models' buffers, the options of an optimizer's parameter
groups. Parameters and optimizer states change nowhere but in ``optimizer.step()``, so as long as no step has
followed the last commit, the boundary and the live parameters together *are* the committed state. (A module
that no optimizer of the state steps, such as an average of the weights, is in the boundary as a whole.) A
*snapshot* is a full copy in host memory for the case that a step has; it is taken as often as its measured
cost allows.
"""

import copy
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import horovod.torch as hvd
import torch
from horovod.common.elastic import State
from horovod.common.exceptions import HostsUpdatedInterrupt
from torch.utils import _pytree as pytree

from edt_hvd import buffers, observing, reducer, world
from edt_hvd.exact import ExactReducer
from edt_hvd.loader import ElasticDataLoader
from edt_hvd.optimizer import reducer_of
from edt_hvd.reporting import ResizeReport, send_progress
from edt_hvd.transfer import bring

SNAPSHOT_SHARE = 0.005
"""The part of the training time that full snapshots may take."""

BOUNDARY_BYTES = 2**20
"""Tensors beyond this size are not copied at every commit; a loss then goes back to the last snapshot."""


@runtime_checkable
class Stateful(Protocol):
    """Anything with torch's `state_dict` and `load_state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """The object's state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Take over a state that `state_dict` gave."""


@dataclass
class _Snapshot:
    """A consistent full copy: the tree of all states in host memory, and the commit it belongs to."""

    tree: dict[str, Any]
    commits: int


class TorchState(State):  # type: ignore[misc]
    """Everything that makes up the training's progress, as attributes of one object.

    Models, optimizers, LR schedulers, gradient scalers, loaders and whatever else has `state_dict` and
    `load_state_dict` are saved through these; any other value is copied and must be picklable.

    Args:
        **values: the objects and plain values, each becoming an attribute of the same name.

    Example:
        state = TorchState(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader, epoch=0)
    """

    def __init__(self, **values: Any) -> None:
        super().__init__(bcast_object=hvd.broadcast_object, get_rank=hvd.rank)
        self._names = tuple(values)
        for name, value in values.items():
            setattr(self, name, value)
            if isinstance(value, torch.nn.Module):
                buffers.track(value)
        self.progress = 0
        self.committed_at: float | None = None
        self.resize_report: ResizeReport | None = None
        self._has_synced = False
        self._survives = False
        self._stepped = False
        self._versions: list[int] = []
        self._snapshot: _Snapshot | None = None
        self._snapshot_seconds = 0.0
        self._snapshot_taken_at = float("-inf")
        self._boundary: dict[str, Any] | None = None
        for optimizer in self._of_type(torch.optim.Optimizer):
            optimizer.register_step_post_hook(_noting(self))

    # What a training loop calls.

    def commit(self) -> None:
        """Declare the state consistent, here and on every other worker.

        Costs microseconds most of the time, so call it after every optimizer step. This is where the
        function is left when the number of workers is about to change.

        Raises:
            HostsUpdatedInterrupt: the world is to be formed anew; `edt_hvd.elastic` handles it.
        """
        self.progress += 1
        self._note_parameters()
        self.committed_at = now = time.monotonic()
        if now - self._snapshot_taken_at >= self._snapshot_seconds / SNAPSHOT_SHARE:
            self.save()
        elif self._boundary is not None:
            self._boundary = _copied(self._small_tree())
        self.report_progress(now)
        for observer in observing.observers():
            observer.committed(self, self.progress, self._values())
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raise `HostsUpdatedInterrupt` when all workers have agreed on a change of the world."""
        here = world.current()
        if isinstance(here, world.FixedWorld):
            if here.horovod_elastic:
                super().check_host_updates()
        elif reducer.stop_agreed():
            raise HostsUpdatedInterrupt(skip_sync=False)
        elif not reducer.sends_headers():
            super().check_host_updates()

    # What the elastic function's wrapper calls.

    def save(self) -> None:
        """Take a full snapshot into host memory, reusing the buffers of the last one."""
        started = time.monotonic()
        self._note_parameters()
        small = self._small_tree()
        self._boundary = _copied(small) if _tensor_bytes(small) <= BOUNDARY_BYTES else None
        old = self._snapshot.tree if self._snapshot else None
        self._snapshot = _Snapshot(_host_copy(self._tree(), old), self.progress)
        self._snapshot_taken_at = time.monotonic()
        self._snapshot_seconds = self._snapshot_taken_at - started

    def restore(self) -> None:
        """Go back to the last commit, or to the last full snapshot if parameters have changed since."""
        if self._boundary is not None and not self._stepped and self._versions == self._parameter_versions():
            self._load(self._boundary)
        elif self._snapshot is not None:
            self.progress = self._snapshot.commits
            self._load(self._snapshot.tree)
        self._stepped = False

    def sync(self) -> None:
        """Bring rank 0's state to every worker. A collective.

        After a change of the world only the workers whose state is another receive it: newcomers, and those
        that had to go back farther than the others.
        """
        for observer in observing.observers():
            observer.syncing()
        holds, self._survives = self._survives, False
        if hvd.size() > 1:
            tree = self._tree() | {"progress": self.progress} if holds or hvd.rank() == 0 else None
            received = bring(tree, self.progress, holds)
            if received is not None:
                self.progress = received.pop("progress")
                self._load(received)
        self._has_synced = True
        for companion in self._companions().values():  # what they say is agreed on in this world, too
            companion.load_state_dict(companion.state_dict())
        for scaler in self._of_type(torch.amp.GradScaler):
            # It comes to life with the first loss it scales, and a worker may have none in its first step.
            scaler.scale(torch.zeros((), device=world.device()))
        self.save()
        for observer in observing.observers():
            observer.synced(self, self.progress, self._values())

    def on_reset(self) -> None:
        """The world was formed anew: this worker's state is one of the training under way."""
        self._survives = self._has_synced
        super().on_reset()

    def report_progress(self, now: float, last: bool = False) -> None:
        """Tell the launcher how far training is, now and then; `last`: whenever that was done before."""
        loaders = self._of_type(ElasticDataLoader)
        step = loaders[0].total_steps_done if loaders else self.progress
        epoch = getattr(self, "epoch", None)
        if self.resize_report is not None:
            self.resize_report.mark("first_step", now)
            self.resize_report.send_to(world.current().launcher, now)
            self.resize_report = None
            last = True
        send_progress(step, epoch, now, at_once=last)

    # The state as a tree of plain containers and tensors.

    def _note_parameters(self) -> None:
        """Take down that the parameters are those of a commit."""
        self._stepped = False
        self._versions = self._parameter_versions()

    def _parameter_versions(self) -> list[int]:
        """How often each parameter has been written to, by whatever torch has counted."""
        return [p._version for module in self._of_type(torch.nn.Module) for p in module.parameters()]

    def _of_type(self, kind: type[Any]) -> list[Any]:
        return [value for name in self._names if isinstance(value := getattr(self, name), kind)]

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _companions(self) -> dict[str, Stateful]:
        """What belongs to modules and optimizers without being in their own states."""
        found: dict[str, Stateful] = {}
        for name, value in self._values().items():
            if isinstance(value, torch.nn.Module):
                found[f"{name}.trainable"] = _Trainable(value)
            elif isinstance(history := reducer_of(value), ExactReducer):
                found[f"{name}.gradients"] = history
        return found

    def _tree(self) -> dict[str, Any]:
        values = {name: _full_state(value) for name, value in self._values().items()}
        return values | self._companion_tree()

    def _companion_tree(self) -> dict[str, Any]:
        return {name: companion.state_dict() for name, companion in self._companions().items()}

    def _small_tree(self) -> dict[str, Any]:
        """The part of the state that a boundary copies: all but parameters and optimizer states."""
        tree: dict[str, Any] = {}
        optimizers = self._of_type(torch.optim.Optimizer)
        stepped = {p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
        for name in self._names:
            value = getattr(self, name)
            if isinstance(value, torch.nn.Module) and not stepped.isdisjoint(value.parameters()):
                tree[name] = {key: buffer.detach() for key, buffer in value.named_buffers()}
            elif isinstance(value, torch.optim.Optimizer):
                tree[name] = [_options(group) for group in value.param_groups]
            else:
                tree[name] = _full_state(value)
        return tree | self._companion_tree()

    def _load(self, tree: dict[str, Any]) -> None:
        buffers.forget()
        companions = self._companions()
        for name, saved in tree.items():
            value = companions[name] if name in companions else getattr(self, name)
            if isinstance(value, torch.nn.Module):
                _load_module(value, saved)
            elif isinstance(value, torch.optim.Optimizer) and isinstance(saved, list):
                for group, options in zip(value.param_groups, saved, strict=True):
                    group.update(_copied(options))
            elif isinstance(value, torch.optim.Optimizer):
                _load_optimizer(value, saved)
            elif isinstance(value, Stateful):
                value.load_state_dict(_copied(saved))
            else:
                setattr(self, name, _copied(saved))


def _noting(state: TorchState) -> Callable[..., None]:
    """A hook that notes optimizer steps, and keeps neither the state nor, through it, the optimizer alive."""
    reference = weakref.ref(state)

    def note_step(*_: Any) -> None:
        held = reference()
        if held is not None:
            held._stepped = True

    return note_step


def _options(group: dict[str, Any]) -> dict[str, Any]:
    """All of an optimizer's parameter group but the parameters."""
    return {name: value for name, value in group.items() if name != "params"}


def _full_state(value: Any) -> Any:
    if isinstance(value, torch.nn.Module):
        buffers = dict(value.named_buffers())
        return value.state_dict() | {key: buffer.detach() for key, buffer in buffers.items()}
    return value.state_dict() if isinstance(value, Stateful) else value


def _load_module(module: torch.nn.Module, saved: dict[str, Any]) -> None:
    buffers = dict(module.named_buffers())
    with torch.no_grad():
        for key, buffer in buffers.items():
            if key in saved:
                buffer.copy_(saved[key])
    persistent = module.state_dict().keys()
    if persistent - buffers.keys() <= saved.keys():
        module.load_state_dict({key: saved[key] for key in persistent})


def _load_optimizer(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Load a state without torch's conversion to the parameters' types, which would change its bits."""
    optimizer.load_state_dict(_copied(saved))
    for group, saved_group in zip(optimizer.param_groups, saved["param_groups"], strict=True):
        for parameter, number in zip(group["params"], saved_group["params"], strict=True):
            own = optimizer.state.get(parameter, {})
            for name, value in saved["state"].get(number, {}).items():
                loaded = own.get(name)
                if isinstance(value, torch.Tensor) and isinstance(loaded, torch.Tensor):
                    own[name] = value.detach().to(loaded.device, copy=True)


class _Trainable:
    """Which of a module's parameters are trainable: a script may freeze and unfreeze them on the way."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def state_dict(self) -> dict[str, Any]:
        return {"requires_grad": bytes(p.requires_grad for p in self._module.parameters())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for parameter, trainable in zip(self._module.parameters(), state["requires_grad"], strict=True):
            parameter.requires_grad_(bool(trainable))


def _copied(value: Any) -> Any:
    """A deep copy; several times faster than `copy.deepcopy` on what states mostly are."""
    kind = type(value)
    if kind in (int, float, bool, str, bytes, type(None)):
        return value
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    if kind is list:
        return [_copied(item) for item in value]
    if kind is torch.Tensor:
        return value.detach().clone()
    return copy.deepcopy(value)


def _tensor_bytes(tree: dict[str, Any]) -> int:
    return sum(leaf.nbytes for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def _host_copy(tree: dict[str, Any], buffers: dict[str, Any] | None) -> dict[str, Any]:
    """A copy of `tree` in host memory, into the tensors of `buffers` where their shapes still fit."""
    leaves, structure = pytree.tree_flatten(tree)
    old, old_structure = pytree.tree_flatten(buffers)
    reusable = old if structure == old_structure else [None] * len(leaves)
    copies = [_copy_leaf(leaf, into) for leaf, into in zip(leaves, reusable, strict=True)]
    return pytree.tree_unflatten(copies, structure)  # type: ignore[no-any-return]


def _copy_leaf(leaf: Any, into: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return _copied(leaf)
    fits = isinstance(into, torch.Tensor) and into.shape == leaf.shape and into.dtype == leaf.dtype
    target = into if fits else torch.empty(leaf.shape, dtype=leaf.dtype)
    with torch.no_grad():
        return target.copy_(leaf)
