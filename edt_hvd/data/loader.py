"""Loading an epoch's samples in effective batches that do not depend on the number of workers.

`ElasticDataLoader` yields a `Step` for every optimizer step; iterating over the step yields this worker's
micro-batches of it. What is loaded follows from (seed, epoch, step, rank, size) and nothing else, so a
loader can go on from its position in any other world. See `edt_hvd.data.batching` for how an epoch is cut.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.context import BaseContext
from typing import Any

from torch.utils.data import DataLoader, Dataset

from edt_hvd.data import torch_loader
from edt_hvd.data.batching import Batch
from edt_hvd.data.cutting import Cutting
from edt_hvd.data.fetching import Fetcher, Key
from edt_hvd.data.order import Order, orders_of
from edt_hvd.data.samples import Request
from edt_hvd.data.seeding import Purpose, seed_for
from edt_hvd.data.step import Fetched, Share, Step
from edt_hvd.data.summary import EpochSummary, Tally
from edt_hvd.errors import StateError
from edt_hvd.reduction import reducer, usage_checks
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage

_ORDER_OPTIONS = ("effective_batch_size", "sampler", "batch_sampler", "shuffle", "drop_last")
"""Options that say what an epoch's batches are; the others say how they are fetched."""


class ElasticDataLoader:
    """Loads a map-style dataset in effective batches, this worker's micro-batches of each.

    Iterating yields a `Step` for every step that is left of the current epoch, and moves on to the next
    epoch when they are used up. Each step must be iterated over to its end; then, when its gradients have
    been reduced, the position moves behind it. A step that was not finished is begun anew when the loop
    over the loader is. The world may change between any two steps: what was prefetched is dropped, and
    every sample of the epoch is still used exactly once.

    Args:
        dataset: any map-style dataset, with any type of sample; or a `torch.utils.data.DataLoader`, whose
            dataset and options are taken over, its ``batch_size`` as the effective batch.
        effective_batch_size: samples per optimizer step, over all workers. The last batch of an epoch
            may be short. Not with a `batch_sampler`.
        micro_batch_size: samples per forward pass; default is the effective batch divided by the job's
            largest number of workers, rounded up. Made smaller, with a warning, where it leaves fewer
            micro-batches than that number; not with a `batch_sampler`.
        sampler: gives the indices of an epoch's samples in their order, as for torch's loader. Its
            ``generator`` and the global random numbers are seeded by epoch, and ``set_epoch`` is called if it
            has that. It must give the same on every worker, which is checked.
        batch_sampler: gives lists of indices, each of which is the effective batch of a step.
        seed: of the order of the samples, together with the number of the epoch; and of the random numbers
            that augmentations, dropout and the like draw (see `edt_hvd.data.seeding`).
        shuffle: draw a new order every epoch; else the dataset's own. Default is yes, without a sampler.
        drop_last: leave a short last batch of an epoch out.
        pin_memory: copy micro-batches to page-locked memory; without effect where there is no CUDA.
        persistent_workers: keep the loading processes over epochs and resizes; default is yes.
        num_workers, collate_fn, worker_init_fn, prefetch_factor, multiprocessing_context, timeout: as
            `torch.utils.data.DataLoader` has them.

    Raises:
        TypeError: an iterable-style dataset or one without a length, a size that is not a whole number, a
            sampler that divides the samples itself, or arguments that exclude each other.
        ValueError: a size out of range, or what torch's loader refuses.
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
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        worker_init_fn: Callable[[int], None] | None = None,
        prefetch_factor: int | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        timeout: float = 0,
        persistent_workers: bool | None = None,
    ) -> None:
        options: dict[str, Any] = {
            "effective_batch_size": effective_batch_size,
            "sampler": sampler,
            "batch_sampler": batch_sampler,
            "shuffle": shuffle,
            "drop_last": drop_last,
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
            dataset, options = torch_loader.taken_over(dataset, options)
        order = {name: options.pop(name) for name in _ORDER_OPTIONS}
        self.dataset = dataset
        self._orders = orders_of(dataset, micro_batch_size=micro_batch_size, **order)
        self._fetcher = Fetcher(dataset, **options)
        self._cutting = Cutting(self.effective_batch_size, micro_batch_size)
        self._seed = seed
        self._epoch = 0
        self._step = 0
        self._steps_before = 0
        self._tally = Tally()
        self._last: EpochSummary | None = None
        self._order: tuple[tuple[int, int], Order] | None = None
        self._loads = 0
        self._current: Step | None = None
        self._put_off: Callable[[], None] | None = None
        self._repeats = False

    def __len__(self) -> int:
        """Optimizer steps in an epoch."""
        return len(self._orders)

    @property
    def epoch(self) -> int:
        """Number of the current epoch, from 0."""
        return self._epoch

    @property
    def position(self) -> int:
        """Steps finished in the current epoch; all of them where the loop is, or was left, in the last."""
        return self._step

    @property
    def total_steps_done(self) -> int:
        """Steps finished over all epochs."""
        return self._steps_before + self._step

    @property
    def summary(self) -> EpochSummary:
        """What has become of the present epoch so far or, until its first step, of the one before."""
        if self._step == 0 and self._last is not None:
            return self._last
        return self._tally.summary(self._epoch, self._step)

    @property
    def effective_batch_size(self) -> int | None:
        """Samples per optimizer step, over all workers; None where a batch sampler says how many."""
        return self._orders.effective_batch_size

    @property
    def micro_batch_size(self) -> int:
        """Samples per micro-batch. Chosen when it is first asked for, which needs `edt_hvd.init()`.

        Raises:
            TypeError: a batch sampler says how many samples a step has, so it may differ by step.
        """
        if self.effective_batch_size is None:
            raise TypeError(
                "the size of a micro-batch differs by step where a batch_sampler says how large steps are"
            )
        return self._cutting.chosen

    def set_epoch(self, epoch: int) -> None:
        """Refused: the loader counts epochs itself, and its state has the number.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"set_epoch({epoch}) of an ElasticDataLoader, which counts its epochs itself (this is epoch "
            f"{self._epoch}) and draws a new order in each; leave the call out"
        )

    def __iter__(self) -> Iterator[Step]:
        reducer.collect_stale()
        usage_checks.watch()
        if self._step and self._step >= self._order_of_epoch().steps:  # an earlier loop was left there
            self._begin_next_epoch()
        self._carry_out_put_off()
        is_checked = True
        while self._step < self._order_of_epoch().steps:
            loads = self._loads
            self._current = step = self._next_step(is_checked)
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
                    f"optimizer.step() was not called after the loop over {step}: its gradients are dropped; "
                    "call it between that loop and state.commit()",
                    stacklevel=2,
                )
        seed_for(Purpose.AFTER_EPOCH, self._seed, self._epoch)
        self._begin_next_epoch()

    def _begin_next_epoch(self) -> None:
        self._last = self._tally.summary(self._epoch, self._step)
        self._steps_before += self._step
        self._epoch += 1
        self._step = 0
        self._tally = Tally()

    # What a state asks.

    @property
    def is_ending(self) -> bool:
        """Whether the loop over it is in the last step of its epoch, and that step is finished."""
        step = self._current
        return step is not None and step.finished and self._step == self._order_of_epoch().steps

    def note_commit(self) -> None:
        """A state that this loader is part of is about to be committed.

        Raises:
            RuntimeError: inside the loop over a step.
        """
        step = self._current
        if step is None:
            return
        if step.is_in_loop:
            raise RuntimeError(
                f"state.commit() inside the loop over {step}, whose gradients are not reduced yet; call it "
                "after that loop and optimizer.step()"
            )
        step.committed = step.passes > 0

    def put_off(self, action: Callable[[], None] | None) -> None:
        """Have `action` called, in place of any before it, when the next epoch begins; None: nothing."""
        self._put_off = action

    def _carry_out_put_off(self) -> None:
        action, self._put_off = self._put_off, None
        if action is not None:
            action()

    def state_dict(self) -> dict[str, Any]:
        """The position and what must stay as it is for the position to mean the same; plain values."""
        return {
            "epoch": self._epoch,
            "step": self._step,
            "steps_before": self._steps_before,
            "samples": self._tally.samples,
            "loss": self._tally.loss,
            "last_epoch": None if self._last is None else tuple(self._last),
            "seed": self._seed,
            **self._cutting.state_dict(),
            "sampler": self._orders.state_dict(),
            **self._fixed_state(),
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
        for name, here in self._fixed_state().items():
            if state[name] != here:
                raise StateError(
                    f"loader state has {name}={state[name]}, this loader {name}={here}, so its position "
                    "means other samples; make them equal, or begin without this state"
                )
        steps = self._orders.fixed_steps
        if state["epoch"] < 0 or state["step"] < 0 or (steps is not None and state["step"] > steps):
            raise StateError(
                f"loader state has epoch={state['epoch']} and step={state['step']}, but epochs begin at 0 "
                f"and have {steps} steps; load what ElasticDataLoader.state_dict() gave"
            )
        self._orders.load_state_dict(state["sampler"])
        self._epoch, self._step, self._seed = state["epoch"], state["step"], state["seed"]
        self._steps_before = state["steps_before"]
        self._tally = Tally(state["samples"], state["loss"])
        self._last = None if state["last_epoch"] is None else EpochSummary(*state["last_epoch"])
        self._cutting.load_state_dict(state)
        self._put_off, self._order = None, None
        self._loads += 1

    def _fixed_state(self) -> dict[str, Any]:
        return {
            "dataset_length": len(self.dataset),  # type: ignore[arg-type]  # it has one, as was checked
            "effective_batch_size": self.effective_batch_size,
            "shuffle": self._orders.shuffle,
            "drop_last": self._orders.drop_last,
        }

    def _order_of_epoch(self) -> Order:
        if self._order is None or self._order[0] != (self._seed, self._epoch):
            self._order = (self._seed, self._epoch), self._orders.draw(self._seed, self._epoch)
        return self._order[1]

    # Micro-batches.

    def _batch(self, step: int) -> Batch:
        positions = self._order_of_epoch().positions(step)
        return Batch(step, positions, self._cutting.micro_batch_size(len(positions)))

    def _position(self) -> tuple[int, int, int]:
        return self._seed, self._epoch, self._step

    def _next_step(self, is_checked: bool) -> Step:
        epoch, batch = self._epoch, self._batch(self._step)
        seed, _, at = self._position()
        tally = self._tally

        def check_position(number: int) -> None:
            if self._position() != (seed, epoch, at + (number > 0)):
                raise RuntimeError(
                    f"step {batch.step} of epoch {epoch} is used when the loader is at step {self._step} of "
                    f"epoch {self._epoch}; take steps from the loop over the loader, load states outside it"
                )

        kept: list[Fetched] | None = None

        def open_share(number: int) -> Share:
            """The first time that a step is passed over again, its micro-batches are loaded anew.

            From then on those of every step are kept: to keep what is mostly used once may take much memory.
            """
            check_position(number)
            self._repeats = self._repeats or number > 0
            return self._share(batch, keep if self._repeats else None) if kept is None else iter(kept)

        def keep(fetched: list[Fetched]) -> None:
            nonlocal kept
            kept = fetched

        def end_pass(number: int, loss: float) -> None:
            check_position(number)
            self._step = at + 1
            self._tally = Tally(tally.samples + batch.samples, tally.loss + loss * batch.samples)

        return Step(seed, epoch, batch, self._order_of_epoch().checksum, open_share, end_pass, is_checked)

    def _share(self, batch: Batch, keep: Callable[[list[Fetched]], None] | None) -> Share:
        """Load this worker's micro-batches of a step; `keep` is given all of them in the end."""
        key = Key(self._seed, self._epoch, batch.step, self._cutting.chosen, world.rank(), world.size())
        stages.enter(Stage.LOADING if self._fetcher.is_at(key) else Stage.STARTING_TO_LOAD)
        return self._fetched(batch, key, world.membership(), keep)

    def _fetched(
        self, batch: Batch, key: Key, membership: int, keep: Callable[[list[Fetched]], None] | None
    ) -> Share:
        share = batch.share(key.rank, key.size)
        micro_batches = self._fetcher.micro_batches(key, len(share), lambda: self._requests(key))
        kept: list[Fetched] = []
        for micro_batch, data in zip(share, micro_batches, strict=True):
            stages.enter(Stage.COMPUTING)
            fetched = micro_batch, micro_batch is share[-1], data
            if keep is not None:
                kept.append(fetched)
            yield fetched
            stages.enter(Stage.LOADING)
        if (world.membership(), world.rank(), world.size()) != (membership, key.rank, key.size):
            raise RuntimeError(
                f"the world changed inside step {key.step} of epoch {key.epoch}; "
                "commit after the loop over a step"
            )
        if keep is not None:
            keep(kept)

    def _requests(self, key: Key) -> Iterator[Request]:
        """What this worker loads from a step to the end of the epoch."""
        order = self._order_of_epoch()
        for step in range(key.step, order.steps):
            for micro_batch in self._batch(step).share(key.rank, key.size):
                yield Request(key.seed, key.epoch, order.indices(micro_batch.positions))
