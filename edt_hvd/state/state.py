"""The training state: what a worker needs to go on where the others are.

Two kinds of copy protect it:

- A *rollback point* is taken at every commit. It holds what is small: plain values, the states of schedulers,
  scalers and loaders, the models' buffers, the options of an optimizer's parameter groups. Parameters and
  optimizer states change only in ``optimizer.step()``; as long as no step has followed the last commit, the
  rollback point and the live parameters together *are* the committed state. A module that no optimizer of the
  state steps, such as an average of the weights, is in the rollback point as a whole, unless it is large (see
  `rollback_point`).
- A *snapshot* is a full copy in host memory, needed once a step has followed the commit. It is taken as often
  as its measured cost allows. From time to time the coordinator's is also written to disk
  (`edt_hvd.checkpoints.checkpointing`).

When a new world is formed, nobody takes a snapshot in the pause: until the next step the rollback point is
enough. If a worker is lost between that step and its commit, each worker goes back to its last snapshot: a
survivor to one from before the change, a newcomer to the state that it received. All then go on from the
latest of them. Only the first worker of a job, which receives nothing, takes a snapshot when it begins.
"""

import time
import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import horovod.torch as hvd
import torch
from horovod.common.elastic import State
from horovod.common.exceptions import HostsUpdatedInterrupt

from edt_hvd.checkpoints import checkpointing
from edt_hvd.checkpoints.checkpoint import Content
from edt_hvd.checkpoints.checkpointing import Checkpoints
from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.errors import StateError
from edt_hvd.observers import observing
from edt_hvd.reduction import buffers, reducer
from edt_hvd.reduction.exact import ExactReducer
from edt_hvd.reduction.optimizer import reducer_of
from edt_hvd.reporting import ResizeReport, send_progress
from edt_hvd.state import random_state
from edt_hvd.state.fitting import check_fit, check_kinds, check_names
from edt_hvd.state.module_walk import buffers_of, parameters_of, tensors_of
from edt_hvd.state.rollback_point import RollbackPoint, large_of
from edt_hvd.state.snapshot import Snapshots, copied
from edt_hvd.state.torch_states import (
    Caches,
    Stateful,
    Trainable,
    full_state,
    is_plain,
    is_stateful,
    load_module,
    load_optimizer,
    options,
)
from edt_hvd.state.transfer import broadcast_state
from edt_hvd.world import stages, world
from edt_hvd.world.elastic_world import ElasticWorld
from edt_hvd.world.fixed_world import FixedWorld
from edt_hvd.world.stages import Stage


class TorchState(State):  # type: ignore[misc]
    """Everything that makes up the training's progress, as attributes of one object.

    Models, optimizers, LR schedulers, gradient scalers, loaders and whatever else has `state_dict` and
    `load_state_dict` are saved through these; any other value is copied and must be picklable.

    Args:
        **values: the objects and plain values, each becoming an attribute of the same name. One that has
            `state_dict` at first has it to the end, and the other way round: workers that join run the script
            from its beginning, so they have what it makes there.

    Raises:
        StateError: a value has the name of one of the state's own attributes or methods.

    Example:
        state = TorchState(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader, epoch=0)
    """

    def __init__(self, **values: Any) -> None:
        super().__init__(bcast_object=hvd.broadcast_object, get_rank=hvd.rank)
        self._names = tuple(values)
        self.progress = 0
        self.committed_at: float | None = None
        self.resize_report: ResizeReport | None = None
        self._survives = False
        self._stepped = False
        self._versions: list[int] = []
        self._has_synced = False
        self._snapshots = Snapshots()
        self._checkpoints: Checkpoints | None = None
        self._rollback_point: RollbackPoint | None = None
        self._stepped_names: frozenset[str] = frozenset()
        self._plain_names: frozenset[str] = frozenset()
        check_names(values, {*dir(TorchState), *vars(self)})
        for name, value in values.items():
            setattr(self, name, value)
            if isinstance(value, torch.nn.Module):
                buffers.track(value)
        self._stateful = {name: is_stateful(value) for name, value in values.items()}
        for optimizer in self._of_type(torch.optim.Optimizer):
            optimizer.register_step_post_hook(_noting(self))

    # What a training loop calls.

    def commit(self) -> None:
        """Declare the state consistent, here and on every other worker.

        Costs microseconds most of the time, so call it after every optimizer step. This is where the
        function is left when the number of workers is about to change.

        Raises:
            HostsUpdatedInterrupt: the world is to be formed anew; `edt_hvd.elastic` handles it.
            StateError: a plain value was replaced by an object with `state_dict`, or such an object by a
                plain value.
        """
        check_kinds(self._values(), self._stateful)
        self.progress += 1
        self._note_parameters()
        self.committed_at = now = time.monotonic()
        if self._snapshots.is_due(now, self.progress):
            self._save_and_offer(now)
        elif self._rollback_point is not None:
            self._rollback_point = self._rollback_point.following(self._small_tree())
        self.report_progress(now)
        for observer in observing.observers():
            observer.committed(self, self.progress, self._values())
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raise `HostsUpdatedInterrupt` when all workers have agreed on a change of the world."""
        if isinstance(world.current(), FixedWorld):
            return
        if reducer.stop_agreed():
            raise HostsUpdatedInterrupt(skip_sync=False)
        if not reducer.sends_headers():
            super().check_host_updates()

    # What the elastic function's wrapper calls.

    def save(self) -> None:
        """Take a full snapshot into host memory, reusing the buffers of the last one."""
        started = time.monotonic()
        self._take_rollback_point(is_full_copy=True)
        self._snapshots.take(self._tree(), self.progress)
        self._snapshots.taken(started, time.monotonic())

    def restore(self) -> None:
        """Go back to the last commit, or to the last full snapshot if parameters have changed since."""
        committed = self._committed()
        if committed is not None:
            self._load(committed)
        elif self._snapshots.last is not None:
            self.progress = self._snapshots.last.commits
            self._load(self._snapshots.last.tree)
        else:
            return
        # What has been loaded counts as written to, and this may be called again.
        self._take_rollback_point(is_full_copy=committed is None)

    def sync(self) -> None:
        """Bring rank 0's state to every worker. A collective.

        The first time, rank 0 goes on from the newest checkpoint, if there is one. After a change of the
        world only the workers whose state is another receive it: newcomers, and those that had to go back
        farther than the others.

        Raises:
            StateError: the checkpoint does not fit.
            RuntimeError: called by another loop than that of `edt_hvd.elastic`.
            ValueError: a variable of `edt_hvd.checkpoints.checkpointing` makes no sense.
        """
        _check_loop(world.current())
        for observer in observing.observers():
            observer.syncing()
        refusal = None if self._has_synced else self._restore_checkpoint()
        holds, self._survives = self._survives, False
        received = None
        if hvd.size() > 1:
            extra = {"progress": self.progress, "refusal": refusal}
            tree = self._tree() | extra if holds or hvd.rank() == 0 else None
            with stages.waiting_for_others():
                received = broadcast_state(tree, self.progress, holds)
        if received is not None:
            self.progress, refusal = received.pop("progress"), received.pop("refusal")
        if refusal is not None:
            raise StateError(refusal)
        if received is not None:
            self._load(received)
        for companion in self._companions().values():  # what they say is agreed on in this world, too
            companion.load_state_dict(companion.state_dict())
        for scaler in self._of_type(torch.amp.GradScaler):
            # It comes to life with the first loss it scales, and a worker may have none in its first step.
            scaler.scale(torch.zeros((), device=world.device()))
        self._has_synced = True
        self._protect(received)
        for observer in observing.observers():
            observer.synced(self, self.progress, self._values())

    def on_reset(self) -> None:
        """The world was formed anew: this worker's state is one of the training under way."""
        self._survives = self._has_synced
        super().on_reset()

    def finish(self) -> None:
        """Training has ended: see to it that the coordinator's checkpoint of its last state is on disk."""
        if hvd.rank() == 0:
            self.save_to_disk({"last": True})

    def save_to_disk(self, about: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Write a checkpoint of the present state, if any are written; returns when it is there."""
        if self._checkpoints is not None:
            self._checkpoints.finish(self.progress, self._saved, {**self._about(), **about})

    def report_progress(self, now: float, last: bool = False) -> None:
        """Tell the launcher how far training is, now and then; `last`: whenever that was done before."""
        step = stages.current().step = self._steps()
        epoch = getattr(self, "epoch", None)
        if self.resize_report is not None:
            self.resize_report.mark("first_step", now)
            self.resize_report.send_to(world.current().launcher, now)
            self.resize_report = None
            last = True
        send_progress(step, epoch, now, at_once=last)

    # Copies.

    def _take_rollback_point(self, is_full_copy: bool) -> None:
        """Copy what is small, if it is.

        Args:
            is_full_copy: whether the state is that of the last full copy; else it is a later commit's.
        """
        self._look_at_modules()
        self._note_parameters()
        small = self._small_tree()
        modules = self._modules().keys()
        large = large_of(small, modules | {f"{name}.caches" for name in modules})
        if large is None:
            self._rollback_point = None
            return
        last = None if is_full_copy else self._rollback_point
        counted = last.counted if last is not None else frozenset()
        parameters = {
            (name, key)
            for name in self._plain_names
            for key in small[name].keys() - buffers_of(getattr(self, name), persistent=True).keys()
        }
        self._rollback_point = RollbackPoint.of(small, large, frozenset(parameters), counted)

    def _committed(self) -> dict[str, Any] | None:
        """What is to be loaded to be back at the last commit; None if that is not enough."""
        if self._rollback_point is None or self._stepped or self._versions != self._parameter_versions():
            return None
        last = self._snapshots.last
        return self._rollback_point.completed(self._small_tree(), last.tree if last is not None else None)

    def _protect(self, received: dict[str, Any] | None) -> None:
        """Take the copies that a rollback needs, now that all workers have the same state.

        Until the next step changes the parameters, a rollback point is enough. After it a rollback needs a
        full copy, of which every worker must have one; a received state serves as one.
        """
        self._take_rollback_point(is_full_copy=received is not None)
        if received is not None:
            self._snapshots.adopt(received, self.progress, time.monotonic())
        elif self._snapshots.last is None:
            self.save()

    def _saved(self) -> Snapshots:
        self.save()
        return self._snapshots

    # Checkpoints.

    def _save_and_offer(self, now: float) -> None:
        """Take a full snapshot, which is also written to disk if it is time."""
        if self._checkpoints is None or hvd.rank() != 0:
            self.save()
        else:
            self._checkpoints.collect()
            self._checkpoints.offer(now, self._saved(), self._about())

    def _restore_checkpoint(self) -> str | None:
        """Go on from the newest checkpoint, on rank 0.

        Returns:
            Why that must not be, for all workers to end with; None if all is well.
        """
        if self._checkpoints is None:  # else the first sync was tried before
            self._checkpoints = checkpointing.for_next_state()
        if self._checkpoints is None or hvd.rank() != 0:
            return None
        try:
            with stages.during(Stage.RESTORING):
                self._checkpoints.restore(self._load_checkpoint)
        except StateError as error:
            return str(error)
        return None

    def _load_checkpoint(self, content: Content) -> None:
        check_fit(self._values(), content.state)
        companions = self._companions()
        known = {n: saved for n, saved in content.state.items() if n in self._names or n in companions}
        try:
            self._load(known)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise StateError(f"{type(error).__name__}: {error}") from error
        random_state.restore(dict(content.random))
        self.progress = content.commits
        self._snapshots.adopt(known, content.commits, time.monotonic())

    def _about(self) -> dict[str, Any]:
        """What a checkpoint's manifest says of the training."""
        loaders = self._of_type(ElasticDataLoader)
        place = {"epoch": loaders[0].epoch, "step": loaders[0].position} if loaders else {}
        return {"steps": self._steps(), **place}

    def _steps(self) -> int:
        """Optimizer steps done, as they are shown."""
        loaders = self._of_type(ElasticDataLoader)
        return int(loaders[0].total_steps_done) if loaders else self.progress

    # The state as a tree of plain containers and tensors.

    def _note_parameters(self) -> None:
        """Take down that the parameters are those of a commit."""
        self._stepped = False
        self._versions = self._parameter_versions()

    def _parameter_versions(self) -> list[int]:
        """How often each parameter of a stepped module has been written to, by what torch has counted."""
        modules = [getattr(self, name) for name in self._names if name in self._stepped_names]
        return [p._version for module in modules for p in parameters_of(module)]

    def _of_type(self, kind: type[Any]) -> list[Any]:
        return [value for name in self._names if isinstance(value := getattr(self, name), kind)]

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _companions(self) -> dict[str, Stateful]:
        """What belongs to modules and optimizers without being in their own states."""
        found: dict[str, Stateful] = {}
        for name, value in self._values().items():
            if isinstance(value, torch.nn.Module):
                found[f"{name}.trainable"] = Trainable(value)
                found[f"{name}.caches"] = Caches(value)
            elif isinstance(history := reducer_of(value), ExactReducer):
                found[f"{name}.gradients"] = history
        return found

    def _tree(self) -> dict[str, Any]:
        values = {name: full_state(value) for name, value in self._values().items()}
        return values | self._companion_tree()

    def _companion_tree(self) -> dict[str, Any]:
        return {name: companion.state_dict() for name, companion in self._companions().items()}

    def _modules(self) -> dict[str, torch.nn.Module]:
        return {n: value for n, value in self._values().items() if isinstance(value, torch.nn.Module)}

    def _look_at_modules(self) -> None:
        """Find out of which modules optimizers of the state step parameters, and which others are plain."""
        optimizers = self._of_type(torch.optim.Optimizer)
        stepped = {p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
        others = {
            name: each for name, each in self._modules().items() if stepped.isdisjoint(parameters_of(each))
        }
        self._stepped_names = frozenset(self._modules().keys() - others.keys())
        self._plain_names = frozenset(name for name, each in others.items() if is_plain(each))

    def _small_tree(self) -> dict[str, Any]:
        """The part of the state that a rollback point copies: all but parameters and optimizer states."""
        tree: dict[str, Any] = {}
        for name in self._names:
            value = getattr(self, name)
            if name in self._stepped_names:
                tree[name] = buffers_of(value, persistent=True)
            elif name in self._plain_names:
                tree[name] = tensors_of(value)
            elif isinstance(value, torch.optim.Optimizer):
                tree[name] = [options(group) for group in value.param_groups]
            else:
                tree[name] = full_state(value)
        return tree | self._companion_tree()

    def _load(self, tree: dict[str, Any]) -> None:
        buffers.invalidate()
        companions = self._companions()
        for name, saved in tree.items():
            value = companions[name] if name in companions else getattr(self, name)
            if isinstance(value, torch.nn.Module):
                load_module(value, saved)
            elif isinstance(value, torch.optim.Optimizer) and isinstance(saved, list):
                for group, options in zip(value.param_groups, saved, strict=True):
                    group.update(copied(options))
            elif isinstance(value, torch.optim.Optimizer):
                load_optimizer(value, saved)
            elif is_stateful(value):
                value.load_state_dict(copied(saved))
            else:
                setattr(self, name, copied(saved))


def _check_loop(current: world.World) -> None:
    if isinstance(current, ElasticWorld) and not current.entered:
        raise RuntimeError(
            "an edt_hvd.TorchState needs the loop of edt_hvd.elastic, which brings the state to new workers; "
            "decorate the function with @edt_hvd.elastic, in place of @hvd.elastic.run"
        )


def _noting(state: TorchState) -> Callable[..., None]:
    """A hook that notes optimizer steps, and keeps neither the state nor, through it, the optimizer alive."""
    reference = weakref.ref(state)

    def note_step(*_: Any) -> None:
        held = reference()
        if held is not None:
            held._stepped = True

    return note_step
