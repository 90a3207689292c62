"""The training state: all that a worker needs to continue where the others are.

`recovery` keeps the copies that protect it in memory, `checkpoint` those on disk, and `transfer` brings it to
newcomers.
"""

import dataclasses
import time
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import horovod.torch as hvd
from horovod.common.elastic import State
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt

from edt_hvd import observing
from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.errors import ResizeInterrupt, StateError
from edt_hvd.observing import Values
from edt_hvd.progress.reporting import ResizeReport, end_progress, send_progress
from edt_hvd.reduction import agreement
from edt_hvd.reduction.grad_modes import ordinary_tensors
from edt_hvd.reduction.gradients import reducer
from edt_hvd.state import structure
from edt_hvd.state.checkpointing import Checkpointing, steps_done
from edt_hvd.state.compatibility import check_contents, check_names
from edt_hvd.state.contents import Contents, track_buffers
from edt_hvd.state.recovery.exposure import Exposure
from edt_hvd.state.recovery.rollback import Rollback
from edt_hvd.state.transfer import broadcast_state
from edt_hvd.state.tree import of_type
from edt_hvd.world import stages, world
from edt_hvd.world.elastic_world import ElasticWorld
from edt_hvd.world.fixed_world import FixedWorld


class TorchState(State):  # type: ignore[misc]
    """The state of the training, as attributes of one object.

    Models, optimizers, LR schedulers, gradient scalers, loaders and other objects with `state_dict` and
    `load_state_dict` are saved through these methods. Any other value is copied and must be picklable.

    Args:
        prepare: makes the changes to objects that the script makes during training (parameter groups, layers,
            a dataset's length), up to the position that the plain values describe. It is called with these,
            as attributes of one object, before the states of the objects are loaded: once in every worker
            that joins or starts, and in a worker that has fallen behind if its objects differ.
        **values: the objects and plain values, each becoming an attribute of the same name. Without `prepare`
            the objects must keep their parts, and a value must not change between an object with `state_dict`
            and a plain value. Workers that join run the script from its beginning, so they have the objects
            that it creates there.

    Raises:
        StateError: a value has the name of one of the state's own attributes or methods, also in a later
            assignment; or a plain value contains an object with `state_dict` or a trained tensor.

    Example:
        state = TorchState(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader, epoch=0)
    """

    def __init__(self, *, prepare: Callable[[Any], object] | None = None, **values: Any) -> None:
        self._contents = Contents(self, values, prepare)
        super().__init__(bcast_object=hvd.broadcast_object, get_rank=hvd.rank)
        self._progress = 0
        self._committed_at: float | None = None
        self._resize_report: ResizeReport | None = None
        self._survives = False
        self._has_synced = False
        self._is_lost = False
        self._is_at_end = False
        """The last commit was that of an epoch's last step, and no rollback point has been made since."""
        self._needed_copy = False
        """Whether a rollback after the last rollback point may have needed a full copy."""
        self._rollback = Rollback()
        self._checkpointing = Checkpointing(self._contents, self._rollback)
        self._restored = False
        check_names(values.keys(), _OWN | vars(self).keys())
        check_contents(values)
        for name, value in values.items():
            setattr(self, name, value)
        track_buffers(values)
        self._rollback.watch(values)

    def __setattr__(self, name: str, value: Any) -> None:
        check_names({name}, _OWN)
        if not name.startswith("_") and name not in self._contents.names and name not in vars(self):
            warnings.warn(
                f"state.{name} is no value of the state: workers that join and checkpoints do not get it; "
                f"name it when it is made: TorchState(..., {name}=None), say",
                stacklevel=2,
            )
        super().__setattr__(name, value)

    # What a training loop calls.

    @property
    def progress(self) -> int:
        """The number of commits."""
        return self._progress

    def commit(self) -> None:
        """Declare the state consistent, here and on every other worker.

        Call it after every optimizer step; it mostly costs microseconds. When the number of workers is about
        to change, the elastic function is left here. After the last step of an epoch this waits until the
        next epoch begins. So the function is entered at the beginning or in the middle of an epoch, never
        when the loader has nothing left.

        Raises:
            ResizeInterrupt: a new world will be formed; `edt_hvd.elastic` handles it.
            HorovodInternalError: a worker is lost; `edt_hvd.elastic` handles it.
            RuntimeError: inside the loop over a step's micro-batches.
            StateError: without `prepare`: an object has other parts than when the function was first
                entered; or a plain value was replaced by an object with `state_dict`, or the reverse.
        """
        values = self._contents.values()
        found = self._contents.check(values)
        loaders = of_type(values, ElasticDataLoader)
        for loader in loaders:
            loader.note_commit()
        ending = [loader for loader in loaders if loader.is_ending]
        self._progress += 1
        self._committed_at = now = time.monotonic()
        for loader in loaders:
            loader.defer_to_next_epoch(self._begin_epoch if loader in ending else None)
        self._contents.note_commit(values)
        if not ending:
            self._make_rollback_point(values, found, now)
        self._is_at_end = bool(ending)
        self.report_progress(now)
        for observer in observing.observers():
            observer.committed(self, self.progress, values)
        if not ending:
            self.check_host_updates()

    def _begin_epoch(self) -> None:
        """Make up for what the commit after an epoch's last step has put off, if all loaders go on.

        In the middle of another loader's step, that is left to the next commit.
        """
        values = self._contents.values()
        loaders = of_type(values, ElasticDataLoader)
        if not any(loader.is_ending or loader.is_in_step for loader in loaders):
            found = self._contents.check(values)
            self._committed_at = now = time.monotonic()
            self._contents.note_commit(values)
            self._make_rollback_point(values, found, now)
            self.check_host_updates()

    def _make_rollback_point(self, values: Values, found: structure.Fingerprint, now: float) -> None:
        """Make the present state, of that structure, what the workers go back to after a loss.

        A rollback never crosses a change of the structure: that takes another rollback point, and a full copy
        if there is one.
        """
        with ordinary_tensors():  # the loop over the next epoch may be a validation in inference mode
            self._rollback.end_stretch(self._is_at_end)
            self._is_at_end = False
            has_changed = self._contents.note_structure(values, found)
            if has_changed:
                self._rollback.take_point(values, is_full_copy=False)
            else:
                self._rollback.note_commit(values)
            needs_copy = self._rollback.needs_copy(lambda: _may_end(values))
            must_copy = has_changed or (needs_copy and not self._needed_copy)
            self._needed_copy = needs_copy
            if not (needs_copy or self._checkpointing.writes):
                self._rollback.snapshots.drop()
                self._rollback.advance(values)
            elif must_copy or self._rollback.snapshots.is_due(now, self.progress):
                self._checkpointing.save(now, self.progress)
            else:
                self._rollback.advance(values)

    def _needs_copy(self, values: Values) -> bool:
        """Whether the next rollback may need a full copy, or the next checkpoint does."""
        return self._checkpointing.writes or self._rollback.needs_copy(lambda: _may_end(values))

    def check_host_updates(self) -> None:
        """Leave the function when a new world is to be formed.

        Raises:
            ResizeInterrupt: all workers have agreed on a change of the world.
            HorovodInternalError: the world has lost a member, which this worker's collectives may not have
                shown yet, or the script has kept from the elastic function.
        """
        current = world.current()
        if isinstance(current, FixedWorld):
            return
        if current.is_broken:
            raise HorovodInternalError("the world has lost a worker")
        if agreement.stop_agreed():
            raise ResizeInterrupt
        if not reducer.active():  # else every optimizer step sends a header
            try:
                super().check_host_updates()
            except HostsUpdatedInterrupt:
                raise ResizeInterrupt from None

    # What the elastic function's wrapper calls.

    @property
    def committed_at(self) -> float | None:
        """When the last commit was made, by the monotonic clock; None before the first."""
        return self._committed_at

    def note_resize(self, report: ResizeReport) -> None:
        """Send this report after the next step, with the time that the first step has taken."""
        self._resize_report = report

    def save(self) -> None:
        """Take a full snapshot into host memory, reusing the buffers of the last one."""
        self._checkpointing.take_snapshot(self.progress)

    def restore(self) -> None:
        """Go back to the last commit, or to the last full snapshot if parameters have changed since.

        If there is neither, this worker has no state until it receives one.
        """
        self._contents.put_back_parts()
        found = self._rollback.go_back()
        if found is None:
            self._is_lost, self._progress = self._has_synced, 0
            self._rollback.exposure = Exposure()
            return
        self._is_at_end = False
        values, plain, commits = found
        self._contents.replace(values, plain)
        if commits is not None:
            self._progress = commits
            self._contents.note_commit(self._contents.values())
        # What has been loaded counts as written to, and this may be called again.
        self._rollback.take_point(self._contents.values(), is_full_copy=commits is not None)

    def sync(self) -> None:
        """Bring rank 0's state to every worker. A collective.

        The first time, rank 0 goes on from the newest checkpoint, if there is one. After a change of the
        world only the workers whose state is another receive it: newcomers, and those that had to go back
        farther than the others.

        Raises:
            StateError: the checkpoint does not fit; or, on this worker alone, what it has received does not.
            RuntimeError: called by another loop than that of `edt_hvd.elastic`.
            ValueError: an environment variable of `edt_hvd.state.checkpoint` is invalid.
        """
        _check_loop(world.current())
        for observer in observing.observers():
            observer.syncing()
        received = self._receive(None if self._has_synced and not self._is_lost else self._begin())
        is_new = received is not None or not self._has_synced or self._is_lost
        if received is not None:
            self._contents.take_over(received, is_first=not self._has_synced)
        self._contents.agree()
        self._has_synced, self._is_lost = True, False
        values = self._contents.values()
        del received  # it takes much memory
        self._rollback.protect(
            values, is_new, self.progress, self._contents.prepared_tree(), lambda: self._needs_copy(values)
        )
        self._needed_copy = self._rollback.needs_copy(lambda: _may_end(values))
        for observer in observing.observers():
            observer.synced(self, self.progress, self._contents.values())

    def _begin(self) -> str | None:
        """Go on from the newest checkpoint, if there is one, on rank 0; a reason why that is impossible."""
        values = self._contents.values()
        check_contents(values)
        self._contents.note_structure(values, self._contents.check(values))
        try:
            content = self._checkpointing.restore(is_first=not self._has_synced)
            if content is not None:
                self._progress, self._restored = content.commits, True
            elif not (self._is_lost or self._restored) and hvd.rank() == 0:
                self._contents.prepare(values)
        except StateError as error:
            return str(error)
        return _LOST if self._is_lost and self._progress == 0 and hvd.rank() == 0 else None

    def _receive(self, refusal: str | None) -> dict[str, Any] | None:
        """Exchange the state; the tree that this worker received, if any.

        Args:
            refusal: why rank 0 cannot go on from its checkpoint; None elsewhere.

        Raises:
            StateError: rank 0 refuses.
        """
        holds, self._survives = self._survives, False
        received = None
        if hvd.size() > 1:
            seen = dataclasses.astuple(self._rollback.exposure)
            extra = {"progress": self.progress, "refusal": refusal, "exposure": seen}
            tree = self._contents.tree() | extra if holds or hvd.rank() == 0 else None
            with stages.waiting_for_others():
                received = broadcast_state(tree, self.progress, holds)
        if received is not None:
            self._progress, refusal = received.pop("progress"), received.pop("refusal")
            self._rollback.exposure = Exposure(*received.pop("exposure"))
        if refusal is not None:
            raise StateError(refusal)
        return received

    def on_reset(self) -> None:
        """A new world was formed: this worker's state is one of the training under way."""
        self._survives = self._has_synced and not self._is_lost
        super().on_reset()

    def note_return(self) -> None:
        """The elastic function has returned: what it has left is what a rollback goes back to from now on.

        The commit of the last step has put off its rollback point to the next epoch, which does not come.
        """
        self._is_at_end = False
        with ordinary_tensors():
            self._rollback.take_point(self._contents.values(), is_full_copy=False)

    def finish(self) -> None:
        """Training has ended: have the coordinator write a checkpoint of the last state, and wait for it."""
        end_progress()
        if hvd.rank() == 0:
            self.save_to_disk({"last": True})

    def save_to_disk(self, about: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Write a checkpoint of the present state, if any are written, and wait for it."""
        self._checkpointing.finish(self.progress, about)

    def report_progress(self, now: float, last: bool = False) -> None:
        """Report to the launcher how far training is, now and then; `last`: in any case."""
        step = stages.current().step = steps_done(self._contents.values(), self.progress)
        epoch = getattr(self, "epoch", None)
        if self._resize_report is not None:
            self._resize_report.mark("first_step", now)
            self._resize_report.send_to(world.current().launcher, now)
            self._resize_report = None
            last = True
        send_progress(step, epoch, now, at_once=last)


_LOST = (
    "a worker was lost between optimizer.step() and state.commit(), and no worker has a copy of the state: "
    "there was no memory for one, or it was the first time that a collective was called there. Nor is there "
    "a checkpoint to go back to. Start the job again, with a folder for checkpoints (--output-dir or "
    "EDT_CHECKPOINT_DIR), or call no collectives there (see docs/explanation/memory.md)"
)

_OWN = frozenset(dir(TorchState)) | {"prepare"}
"""Names that a script must not set."""


def _may_end(values: Values) -> bool:
    """Whether the next step may be the last of an epoch."""
    return any(loader.may_end for loader in of_type(values, ElasticDataLoader))


def _check_loop(current: world.World) -> None:
    if isinstance(current, ElasticWorld) and not current.entered:
        raise RuntimeError(
            "an edt_hvd.TorchState needs the loop of edt_hvd.elastic, which brings the state to new workers; "
            "decorate the function with @edt_hvd.elastic, in place of @hvd.elastic.run"
        )
