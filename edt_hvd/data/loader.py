"""Loading an epoch's samples in effective batches that do not depend on the number of workers.

`ElasticDataLoader` yields a `Step` for every optimizer step; iterating over the step yields this worker's
micro-batches of it. What is loaded follows from (seed, epoch, step, rank, size) and nothing else, so a
loader can go on from its position in any other world. See `edt_hvd.data.batching` for how an epoch is cut.
"""

import functools
import gc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.context import BaseContext
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from edt_hvd.data.batching import (
    Batch,
    Batching,
    MicroBatch,
    check_sizes,
    choose_micro_batch_size,
    mixed_seed,
)
from edt_hvd.data.samples import Request, SeededSamples, begin_loading
from edt_hvd.data.seeding import Purpose, seed_for
from edt_hvd.data.step import Share, Step
from edt_hvd.errors import StateError
from edt_hvd.reduction import reducer
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage


class _Key(NamedTuple):
    """All that the rest of an epoch's micro-batches on this worker follow from."""

    seed: int
    epoch: int
    step: int
    micro_batch_size: int
    rank: int
    size: int


class _MicroBatchSampler:
    """The batch sampler under torch's loader: the dataset's indices of each of this worker's micro-batches.

    torch may iterate over it more than once per iteration of its own, so iterating changes nothing.
    """

    def __init__(self, batching: Batching, shuffle: bool) -> None:
        self.batching = batching
        self.shuffle = shuffle
        self.key: _Key | None = None
        self._order: tuple[tuple[int, int], torch.Tensor] | None = None

    def __iter__(self) -> Iterator[Request]:
        if (key := self.key) is None:
            return
        for step in range(key.step, self.batching.steps):
            for micro_batch in self.batching.batch(step, key.micro_batch_size).share(key.rank, key.size):
                yield Request(key.seed, key.epoch, self._indices(key, micro_batch.positions))

    def _indices(self, key: _Key, positions: range) -> list[int]:
        if not self.shuffle:
            return list(positions)
        return self._permutation(key.seed, key.epoch)[positions.start : positions.stop].tolist()

    def _permutation(self, seed: int, epoch: int) -> torch.Tensor:
        if self._order is None or self._order[0] != (seed, epoch):
            generator = torch.Generator().manual_seed(mixed_seed(seed, epoch))
            self._order = (seed, epoch), torch.randperm(self.batching.dataset_length, generator=generator)
        return self._order[1]


class ElasticDataLoader:
    """Loads a map-style dataset in effective batches, this worker's micro-batches of each.

    Iterating yields a `Step` for every step that is left of the current epoch, and moves on to the next
    epoch when they are used up. Each step must be iterated over to its end; then, when its gradients have
    been reduced, the position moves behind it. A step that was not finished is begun anew when the loop
    over the loader is. The world may change between any two steps: what was prefetched is dropped, and
    every sample of the epoch is still used exactly once.

    Args:
        dataset: any map-style dataset, with any type of sample.
        effective_batch_size: samples per optimizer step, over all workers. The last batch of an epoch
            may be short.
        micro_batch_size: samples per forward pass; default is the effective batch divided by the job's
            largest number of workers, rounded up. Made smaller, with a warning, where it leaves fewer
            micro-batches than that number.
        seed: of the order of the samples, together with the number of the epoch; and of the random numbers
            that augmentations, dropout and the like draw (see `edt_hvd.data.seeding`).
        shuffle: draw a new order every epoch; else the dataset's own.
        drop_last: leave a short last batch of an epoch out.
        pin_memory: copy micro-batches to page-locked memory; without effect where there is no CUDA.
        persistent_workers: keep the loading processes over epochs and resizes; default is yes.
        num_workers, collate_fn, worker_init_fn, prefetch_factor, multiprocessing_context, timeout: as
            `torch.utils.data.DataLoader` has them.

    Raises:
        TypeError: an iterable-style dataset or one without a length, or a size that is not a whole number.
        ValueError: a size out of range, or what torch's loader refuses.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        effective_batch_size: int,
        micro_batch_size: int | None = None,
        *,
        seed: int = 0,
        shuffle: bool = True,
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
        check_sizes(effective_batch_size, micro_batch_size)
        self.dataset = dataset
        self._batching = Batching(_length(dataset), effective_batch_size, drop_last)
        self._requested = micro_batch_size
        self._micro_batch_size: int | None = None
        self._seed = seed
        self._epoch = 0
        self._step = 0
        self._loads = 0
        self._sampler = _MicroBatchSampler(self._batching, shuffle)
        # Loading processes are seeded from it, so that torch's own loader leaves the global generator alone.
        self._generator = torch.Generator()
        self._options: dict[str, Any] = {
            "batch_sampler": self._sampler,
            "generator": self._generator,
            "num_workers": num_workers,
            "collate_fn": collate_fn,
            "pin_memory": pin_memory and torch.cuda.is_available(),
            "worker_init_fn": functools.partial(begin_loading, worker_init_fn),
            "prefetch_factor": prefetch_factor,
            "multiprocessing_context": multiprocessing_context,
            "timeout": timeout,
            "persistent_workers": num_workers > 0 if persistent_workers is None else persistent_workers,
        }
        self._loader: DataLoader[Any] | None = DataLoader(SeededSamples(dataset), **self._options)
        # What is being loaded: `_stream` gives the micro-batches from `_stream_key` on, None when unknown.
        self._stream: Iterator[Any] = iter(())
        self._stream_key: _Key | None = None

    def __len__(self) -> int:
        """Optimizer steps in an epoch."""
        return self._batching.steps

    @property
    def epoch(self) -> int:
        """Number of the current epoch, from 0."""
        return self._epoch

    @property
    def position(self) -> int:
        """Steps finished in the current epoch; ``len(self)`` between its last step and the next epoch."""
        return self._step

    @property
    def total_steps_done(self) -> int:
        """Steps finished over all epochs."""
        return self._epoch * len(self) + self._step

    @property
    def effective_batch_size(self) -> int:
        """Samples per optimizer step, over all workers."""
        return self._batching.effective_batch_size

    @property
    def micro_batch_size(self) -> int:
        """Samples per micro-batch. Chosen when it is first asked for, which needs `edt_hvd.init()`."""
        if self._micro_batch_size is None:
            size, warning = choose_micro_batch_size(
                self.effective_batch_size, self._requested, world.max_size()
            )
            self._micro_batch_size = size
            if warning and world.rank() == 0:
                warnings.warn(warning, stacklevel=2)
            if self._requested is None and not world.current().knows_max_size and world.rank() == 0:
                warnings.warn(
                    f"micro_batch_size={size} is chosen for the {world.size()} workers there are now: "
                    "horovodrun does not tell its --max-np; give ElasticDataLoader a micro_batch_size, or "
                    "set EDT_MAX_NP to that number",
                    stacklevel=2,
                )
        return self._micro_batch_size

    def __iter__(self) -> Iterator[Step]:
        reducer.collect_stale()
        while self._step < len(self):
            loads = self._loads
            step = self._next_step()
            seed_for(Purpose.BEFORE_STEP, self._seed, step.epoch, step.index)
            yield step
            if not step.finished and self._loads == loads:
                raise RuntimeError(
                    f"{step} was left before its micro-batches were used up, so its gradients are not the "
                    "batch's; iterate over each step to its end (break belongs into the loop over the loader)"
                )
        seed_for(Purpose.AFTER_EPOCH, self._seed, self._epoch)
        self._epoch += 1
        self._step = 0

    def state_dict(self) -> dict[str, Any]:
        """The position and what must stay as it is for the position to mean the same; plain values."""
        return {
            "epoch": self._epoch,
            "step": self._step,
            "seed": self._seed,
            "micro_batch_size": self._micro_batch_size,
            "requested_micro_batch_size": self._requested,
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
        if state["epoch"] < 0 or not 0 <= state["step"] <= len(self):
            raise StateError(
                f"loader state has epoch={state['epoch']} and step={state['step']}, but epochs begin at 0 "
                f"and have {len(self)} steps; load what ElasticDataLoader.state_dict() gave"
            )
        self._epoch, self._step, self._seed = state["epoch"], state["step"], state["seed"]
        # Workers load one state, so they agree even where the job's largest number of workers changes.
        same_request = state["requested_micro_batch_size"] == self._requested
        self._micro_batch_size = state["micro_batch_size"] if same_request else None
        self._loads += 1

    def _fixed_state(self) -> dict[str, Any]:
        return {
            "dataset_length": self._batching.dataset_length,
            "effective_batch_size": self.effective_batch_size,
            "shuffle": self._sampler.shuffle,
            "drop_last": self._batching.drop_last,
        }

    def _position(self) -> tuple[int, int, int, int]:
        return self._seed, self._epoch, self._step, self.micro_batch_size

    def _next_step(self) -> Step:
        epoch, batch = self._epoch, self._batching.batch(self._step, self.micro_batch_size)
        position = self._position()

        def check_position() -> None:
            if self._position() != position:
                raise RuntimeError(
                    f"step {batch.step} of epoch {epoch} is used when the loader is at step {self._step} of "
                    f"epoch {self._epoch}; take steps from the loop over the loader, load states outside it"
                )

        def open_share() -> Share:
            check_position()
            return self._share(batch)

        def advance() -> None:
            check_position()
            self._step += 1

        return Step(self._seed, epoch, batch, open_share, advance)

    def _share(self, batch: Batch) -> Share:
        key, membership = _Key(*self._position(), world.rank(), world.size()), world.membership()
        goes_on = self._stream_key == key
        stages.enter(Stage.LOADING if goes_on else Stage.STARTING_TO_LOAD)
        stream = self._stream if goes_on else self._restart(key)
        self._stream_key = None
        share = batch.share(key.rank, key.size)
        return self._consume(stream, share, key, membership)

    def _consume(
        self, stream: Iterator[Any], share: Sequence[MicroBatch], key: _Key, membership: int
    ) -> Share:
        for micro_batch in share:
            if micro_batch is not share[0]:
                stages.enter(Stage.LOADING)
            try:
                data = next(stream)
            except BaseException:
                self._loader = None  # its processes may be gone; the next iteration starts others
                raise
            stages.enter(Stage.COMPUTING)
            yield micro_batch, micro_batch is share[-1], data
        if (world.membership(), world.rank(), world.size()) != (membership, key.rank, key.size):
            raise RuntimeError(
                f"the world changed inside step {key.step} of epoch {key.epoch}; "
                "commit after the loop over a step"
            )
        self._stream_key = key._replace(step=key.step + 1)

    def _restart(self, key: _Key) -> Iterator[Any]:
        """Drop what was prefetched and load from the current position on, in the current world."""
        if self._loader is None:
            gc.collect()  # a failed iterator kept by its error stalls at its end, once other processes fork
            self._loader = DataLoader(SeededSamples(self.dataset), **self._options)
        self._sampler.key = key
        self._generator.manual_seed(mixed_seed(key.seed, key.epoch, key.step, key.rank))
        self._stream = iter(self._loader)
        return self._stream


def _length(dataset: Dataset[Any]) -> int:
    if isinstance(dataset, IterableDataset):
        raise TypeError(
            f"{type(dataset).__name__} is an IterableDataset, whose samples have no numbers to divide among "
            "workers; give a map-style dataset, with __getitem__ and __len__"
        )
    try:
        return len(dataset)  # type: ignore[arg-type]  # torch's Dataset leaves the length to its subclasses
    except TypeError:
        raise TypeError(
            f"{type(dataset).__name__} has no length; give a map-style dataset, with __getitem__ and __len__"
        ) from None
