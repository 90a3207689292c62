"""Loading an epoch's samples in effective batches that do not depend on the number of workers.

`ElasticDataLoader` yields a `Step` for every optimizer step; iterating over the step yields this worker's
micro-batches of it. What is loaded follows from (seed, epoch, step, rank, size) and nothing else, so a
loader can go on from its position in any other world. See `edt_hvd.data.batching` for how an epoch is cut,
and `edt_hvd.data.source` for where the samples come from.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.context import BaseContext
from typing import Any

from torch.utils.data import DataLoader, Dataset

from edt_hvd.data import torch_loader
from edt_hvd.data.batching import Batch, MicroBatch
from edt_hvd.data.epoch_position import EpochPosition, EpochSummary
from edt_hvd.data.loop import Loop
from edt_hvd.data.randomness.seeding import Purpose, seed_for
from edt_hvd.data.source import Position
from edt_hvd.data.source_choice import source_of
from edt_hvd.data.step import Fetched, Share, Step
from edt_hvd.errors import StateError
from edt_hvd.reduction import participants, usage_checks
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage


class ElasticDataLoader:
    """Loads a dataset in effective batches, this worker's micro-batches of each.

    Iterating yields a `Step` for every remaining step of the current epoch, then moves on to the next epoch.
    `enumerate` numbers the steps by their place in the epoch. Iterate over each step to its end: when its
    gradients have been reduced, the position advances. The next loop over the loader repeats an unfinished
    step. The world may change between any two steps. Prefetched samples are then dropped, and every sample
    of the epoch is still used exactly once.

    Args:
        dataset: a map-style dataset with any type of sample; a stream, such as an `IterableDataset` of torch
            or Hugging Face (see `edt_hvd.data.streams.stream`); or a `torch.utils.data.DataLoader`, whose
            dataset and options are taken over, with its ``batch_size`` as the effective batch size.
        effective_batch_size: samples per optimizer step, over all workers. The last batch of an epoch
            may be short. Not allowed with a `batch_sampler`.
        micro_batch_size: samples per forward pass. Default is an eighth of the effective batch, rounded up.
            Reduced, with a warning, if a step would have fewer micro-batches than the job may have workers;
            with a `batch_sampler` this applies to the default only.
        sampler: yields the indices of an epoch's samples in their order, as for torch's loader. Its
            ``generator`` and the global random numbers are seeded by epoch, and its ``set_epoch`` is called
            if it has one. It must yield the same on every worker, which is checked.
        batch_sampler: yields lists of indices, each of which is the effective batch of a step.
        seed: seed of the order of the samples, together with the number of the epoch, and of the random
            numbers for augmentation, dropout and the like (see `edt_hvd.data.randomness.seeding`).
        shuffle: draw a new order every epoch instead of using the dataset's. Default is True without a
            sampler.
        drop_last: omit the last batch of an epoch if it is short.
        snapshot_every_n_steps: for a stream with ``state_dict`` and ``load_state_dict``: steps between two
            snapshots of that state. Workers that join read on from there instead of from the beginning of
            the epoch. The state must restore exactly what followed. Default is never.
        pin_memory: copy micro-batches to page-locked memory; no effect without CUDA.
        persistent_workers: keep loading processes over loops, epochs and resizes. They have the dataset as
            it was when they started. Default is False.
        num_workers, collate_fn, worker_init_fn, prefetch_factor, multiprocessing_context, timeout: as for
            `torch.utils.data.DataLoader`.

    Raises:
        TypeError: an iterator, a dataset without a length that is no stream, a size that is not a whole
            number, a sampler or stream that divides the samples itself, or arguments that exclude each other.
        ValueError: a size out of range, or an option that torch's loader refuses.
    """

    def __init__(
        self,
        dataset: Dataset[Any] | DataLoader[Any],
        effective_batch_size: int | None = None,
        micro_batch_size: int | None = None,
        *,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        seed: int = 0,
        shuffle: bool | None = None,
        drop_last: bool = False,
        snapshot_every_n_steps: int | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        worker_init_fn: Callable[[int], None] | None = None,
        prefetch_factor: int | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        timeout: float = 0,
        persistent_workers: bool = False,
    ) -> None:
        options: dict[str, Any] = {
            "effective_batch_size": effective_batch_size,
            "sampler": sampler,
            "batch_sampler": batch_sampler,
            "shuffle": shuffle,
            "drop_last": drop_last,
            "snapshot_every_n_steps": snapshot_every_n_steps,
            "num_workers": num_workers,
            "collate_fn": collate_fn,
            "pin_memory": pin_memory,
            "worker_init_fn": worker_init_fn,
            "prefetch_factor": prefetch_factor,
            "multiprocessing_context": multiprocessing_context,
            "timeout": timeout,
            "persistent_workers": persistent_workers,
        }
        if isinstance(dataset, DataLoader):
            dataset, options = torch_loader.options_from_dataloader(dataset, options)
        self.dataset = dataset
        self._source = source_of(dataset, micro_batch_size, options)
        self._seed = seed
        self._at = EpochPosition()
        self._loads = 0
        self._current: Step | None = None
        self._deferred: Callable[[], None] | None = None
        self._repeats = False

    def __len__(self) -> int:
        """Optimizer steps in an epoch.

        Raises:
            TypeError: the number is unknown before the end of the epoch, as with some samplers and most
                streams.
        """
        return len(self._source)

    @property
    def epoch(self) -> int:
        """Number of the current epoch, from 0."""
        return self._at.epoch

    @property
    def position(self) -> int:
        """Steps finished in the current epoch; all of its steps until the loop moves on to the next one."""
        return self._at.step

    @property
    def total_steps_done(self) -> int:
        """Steps finished over all epochs."""
        return self._at.steps_before + self._at.step

    @property
    def summary(self) -> EpochSummary:
        """Summary of the current epoch so far; before its first step, of the previous epoch."""
        return self._at.summary

    @property
    def effective_batch_size(self) -> int | None:
        """Samples per optimizer step, over all workers; None with a batch sampler."""
        return self._source.effective_batch_size

    @property
    def micro_batch_size(self) -> int:
        """Samples per micro-batch. Chosen at the first access, which needs `edt_hvd.init()`.

        Raises:
            TypeError: the loader has a batch sampler, so the size may differ between steps.
        """
        if self.effective_batch_size is None:
            raise TypeError(
                "the size of a micro-batch differs by step where a batch_sampler says how large steps are"
            )
        return self._source.micro_batching.chosen

    def set_epoch(self, epoch: int) -> None:
        """Raise an error: the loader counts epochs itself, and its state contains the number.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"set_epoch({epoch}) of an ElasticDataLoader, which counts its epochs itself (this is epoch "
            f"{self.epoch}) and draws a new order in each; leave the call out"
        )

    def __iter__(self) -> Iterator[Step]:
        return Loop(self._steps())

    def _steps(self) -> Iterator[Step]:
        participants.collect_stale()
        participants.begin_loop()
        usage_checks.watch()
        self._source.begin_loop()
        if self.position and self._batch() is None:  # an earlier loop was left there
            self._at = self._at.next_epoch()
        self._run_deferred()
        is_checked = True
        while (batch := self._batch()) is not None:
            loads = self._loads
            if is_checked:
                self._source.micro_batching.warn_of_idle_workers(batch)
            self._current = step = self._next_step(batch, is_checked)
            seed_for(Purpose.BEFORE_STEP, self._seed, step.epoch, step.index)
            try:
                yield step
            finally:
                self._current = None
            if self._loads != loads:
                continue
            if not step.finished:
                raise RuntimeError(
                    f"{step} was left before its micro-batches were used up, so its gradients are not the "
                    "batch's; iterate over each step to its end (break belongs into the loop over the loader)"
                )
            is_checked = False
            if step.is_unused:
                warnings.warn(
                    "optimizer.step() was not called after the loop over a step: its gradients are dropped "
                    "by state.commit(), or added to the next step's; call it between the two",
                    stacklevel=3,
                )
        self._source.begin_loop()
        seed_for(Purpose.AFTER_EPOCH, self._seed, self.epoch)
        self._at = self._at.next_epoch()

    # What a state asks.

    @property
    def is_ending(self) -> bool:
        """Whether the loop over it is in the last step of its epoch, and that step is finished."""
        step = self._current
        return step is not None and step.finished and self._batch() is None

    @property
    def may_end(self) -> bool:
        """Whether the next step may be the last of its epoch: it is, or that is not known before."""
        try:
            return self.position + 1 >= len(self)
        except TypeError:
            return True

    def fixed_state(self) -> dict[str, Any]:
        """What must stay as it is for a position to mean the same."""
        return self._source.fixed_state()

    @property
    def is_in_step(self) -> bool:
        """Whether the loop over it is in a step that has been passed over and is not committed."""
        step = self._current
        return step is not None and (step.is_in_loop or step.passes > 0) and not step.committed

    def note_commit(self) -> None:
        """A state that this loader is part of is about to be committed.

        Raises:
            RuntimeError: inside the loop over a step.
        """
        step = self._current
        if step is None:
            participants.note_commit()
            return
        if step.is_in_loop:
            raise RuntimeError(
                f"state.commit() inside the loop over {step}, whose gradients are not reduced yet; call it "
                "after that loop and optimizer.step()"
            )
        step.committed = step.passes > 0
        participants.note_commit()

    def defer_to_next_epoch(self, action: Callable[[], None] | None) -> None:
        """Have `action` called, in place of any before it, when the next epoch begins; None: nothing."""
        self._deferred = action

    def _run_deferred(self) -> None:
        action, self._deferred = self._deferred, None
        if action is not None:
            action()

    def state_dict(self) -> dict[str, Any]:
        """The position and what must stay as it is for the position to mean the same; plain values."""
        return {
            **self._at.state_dict(),
            "seed": self._seed,
            **self._source.state_dict(),
            **self.fixed_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved position, with its seed, and its micro-batches if the same were requested.

        Raises:
            StateError: the state is of another dataset length, effective batch size, shuffle or drop_last,
                or is not a loader's state. Nothing has changed then.
        """
        missing = sorted(self.state_dict().keys() - state.keys())
        if missing:
            raise StateError(
                f"loader state without {', '.join(missing)}; load what ElasticDataLoader.state_dict() gave"
            )
        for name, here in self.fixed_state().items():
            if state[name] != here:
                raise StateError(
                    f"loader state has {name}={state[name]}, this loader {name}={here}, so its position "
                    "means other samples; make them equal, or begin without this state"
                )
        if state["epoch"] < 0 or state["step"] < 0:
            raise StateError(
                f"loader state has epoch={state['epoch']} and step={state['step']}, but both begin at 0; "
                "load what ElasticDataLoader.state_dict() gave"
            )
        self._source.check(state)
        self._source.load_state_dict(state)
        self._at, self._seed = EpochPosition.of(state), state["seed"]
        self._deferred = None
        self._loads += 1

    # Micro-batches.

    def _position(self) -> Position:
        return Position(self._seed, self.epoch, self.position)

    def _batch(self) -> Batch | None:
        return self._source.batch(self._position())

    def _next_step(self, batch: Batch, is_checked: bool) -> Step:
        at, before = self._position(), self._at

        def check_position(number: int) -> None:
            if self._position() != at._replace(step=at.step + (number > 0)):
                raise RuntimeError(
                    f"step {at.step} of epoch {at.epoch} is used when the loader is at step {self.position} "
                    f"of epoch {self.epoch}; take steps from the loop over the loader, load states outside it"
                )

        kept: list[Fetched] | None = None

        def open_share(number: int) -> Share:
            """The first time that a step is passed over again, its micro-batches are loaded anew.

            From then on those of every step are kept: to keep what is mostly used once may take much memory.
            """
            check_position(number)
            self._repeats = self._repeats or number > 0
            return self._share(at, batch, keep if self._repeats else None) if kept is None else iter(kept)

        def keep(fetched: list[Fetched]) -> None:
            nonlocal kept
            kept = fetched

        def end_pass(number: int, loss: float) -> None:
            check_position(number)
            self._at = before.after_step(batch.samples, loss)

        checksum = self._source.checksum(at)
        compare = self._source.comparison(at)
        return Step(at.seed, at.epoch, batch, checksum, open_share, end_pass, is_checked, compare)

    def _share(self, at: Position, batch: Batch, keep: Callable[[list[Fetched]], None] | None) -> Share:
        """Load this worker's micro-batches of a step; `keep` is given all of them in the end."""
        here = world.membership(), world.rank(), world.size()
        share = batch.share(*here[1:])
        return self._fetched(at, share, self._source.load(at, batch), here, keep)

    def _fetched(
        self,
        at: Position,
        share: Sequence[MicroBatch],
        loaded: Iterator[Any],
        here: tuple[int, int, int],
        keep: Callable[[list[Fetched]], None] | None,
    ) -> Share:
        kept: list[Fetched] = []
        for micro_batch, data in zip(share, loaded, strict=True):
            stages.enter(Stage.COMPUTING)
            fetched = micro_batch, micro_batch is share[-1], data
            if keep is not None:
                kept.append(fetched)
            yield fetched
            stages.enter(Stage.LOADING)
        if (world.membership(), world.rank(), world.size()) != here:
            raise RuntimeError(
                f"the world changed inside step {at.step} of epoch {at.epoch}; "
                "commit after the loop over a step"
            )
        if keep is not None:
            keep(kept)
