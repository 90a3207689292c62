"""Batches of a stream: a dataset that gives its samples one after another.

Each worker reads what its micro-batches come from, see `edt_hvd.data.streams.stream_batching`. Before
every step the workers tell one another how many samples they got, so that all know the batch, and its end
at the same step.

A position in a stream is a number of steps. To go on from one, in another world or after a restart, the
stream is read from the beginning of the epoch again or, if the script asks for it, from the latest snapshot
of the stream's own state.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from torch.utils.data import Dataset

from edt_hvd import collectives
from edt_hvd.data.batching import Batch, Batching, check_positive, check_sizes
from edt_hvd.data.fetching import Fetcher, Key
from edt_hvd.data.micro_batching import MicroBatching
from edt_hvd.data.randomness import random_state
from edt_hvd.data.source import Position, Source
from edt_hvd.data.streams.stream_batching import StreamBatching
from edt_hvd.data.streams.stream_reading import Snapshot, StepRead, StepRequest, StreamReader, num_shards
from edt_hvd.errors import StateError
from edt_hvd.reduction import header
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage


class _Current(NamedTuple):
    """The step that was read last: for which place in which world, its batch and this worker's data."""

    key: Key
    membership: int
    batch: Batch | None
    data: list[Any]


class StreamSource(Source):
    """Reads a stream, the same samples in the same steps whatever the number of workers.

    Args:
        dataset: the stream. With ``num_shards`` and ``shard(num_shards, index)`` each worker reads only the
            parts that it needs; without them, all of it. ``set_epoch(epoch)`` is called before an epoch, if
            it has that.
        effective_batch_size, micro_batch_size, drop_last: as for `edt_hvd.ElasticDataLoader`; `drop_last`
            ends an epoch at the first step without a full batch.
        snapshot_every_n_steps: steps from one snapshot of the stream's own state to the next; None for no
            such snapshots.
        collate_fn: makes a micro-batch of a list of samples.
        fetching: how the stream is read, as for `Fetcher`.

    Raises:
        TypeError: an iterator, which has one epoch only; a stream that is divided among ranks already; no
            effective batch size; or a size that is not a whole number.
        ValueError: a size out of range.
    """

    shuffle = False

    def __init__(
        self,
        dataset: Any,
        effective_batch_size: int | None,
        micro_batch_size: int | None,
        drop_last: bool,
        snapshot_every_n_steps: int | None,
        collate_fn: Callable[[list[Any]], Any] | None,
        fetching: Callable[[Dataset[Any]], Fetcher],
    ) -> None:
        _check(dataset)
        if effective_batch_size is None:
            raise TypeError("give effective_batch_size, the samples of one optimizer step over all workers")
        check_sizes(effective_batch_size, micro_batch_size)
        if snapshot_every_n_steps is not None:
            check_positive("snapshot_every_n_steps", snapshot_every_n_steps)
        self.effective_batch_size: int = effective_batch_size
        self.drop_last = drop_last
        self.micro_batching = MicroBatching(effective_batch_size, micro_batch_size)
        self._dataset = dataset
        self._shards = num_shards(dataset)
        self._every = snapshot_every_n_steps
        self._fetcher = fetching(StreamReader(dataset, collate_fn))
        self._snapshot: Snapshot | None = None
        self._states_are_exact = True
        self._current: _Current | None = None

    def __len__(self) -> int:
        if self._shards is not None or not hasattr(self._dataset, "__len__"):
            raise TypeError(
                f"the steps of an epoch of {type(self._dataset).__name__} are not known before its end; do "
                "without len(loader), or count steps instead of epochs"
            )
        return Batching(len(self._dataset), self.effective_batch_size, self.drop_last).steps

    def begin_loop(self) -> None:
        """Have the stream as it is now read anew, where a loading process reads it."""
        if self._fetcher.begin_loop():
            self._current = None

    def batch(self, at: Position) -> Batch | None:
        """Read the step, unless it is the one that was read last. A collective."""
        key = Key(*at, self.micro_batching.chosen, world.rank(), world.size())
        found = self._current
        if found is None or (found.key, found.membership) != (key, world.membership()):
            membership = world.membership()
            self._current = None
            self._current = found = _Current(key, membership, *self._next(key))
        return found.batch

    def checksum(self, at: Position) -> int:
        """Nothing: what the workers read is compared before the step."""
        return 0

    def load(self, at: Position, batch: Batch) -> Iterator[Any]:
        """The data, which is kept until the next step is read."""
        assert self._current is not None
        assert self._current.batch is batch
        return iter(self._current.data)

    def state_dict(self) -> dict[str, Any]:
        """How batches are cut, and the latest snapshot."""
        snapshot = None if self._snapshot is None else self._snapshot._asdict()
        every = {"snapshot_every_n_steps": self._every}
        return {**self.micro_batching.state_dict(), **every, "snapshot": snapshot}

    def check(self, state: Mapping[str, Any]) -> None:
        """Check that steps are cut as they were, where that decides which samples they have."""
        if self._is_cut_otherwise(state) and state["step"] > 0:
            raise StateError(
                f"loader state in the middle of an epoch has micro_batch_size="
                f"{state['requested_micro_batch_size']}, this loader {self.micro_batching.requested}, so the "
                "steps of its sharded stream have other samples; make them equal, or begin without this state"
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Have the stream read anew, from the snapshot's states if it has some."""
        saved = state["snapshot"]
        if self._is_cut_otherwise(state) or state["snapshot_every_n_steps"] != self._every:
            saved = None
        self._snapshot = None if saved is None else Snapshot(**saved)
        self.micro_batching.load_state_dict(state)
        self._current = None

    def fixed_state(self) -> dict[str, Any]:
        """The options of batches, and the number of shards."""
        return {
            "dataset_length": None,
            "effective_batch_size": self.effective_batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
            "num_shards": self._shards,
        }

    def _is_cut_otherwise(self, state: Mapping[str, Any]) -> bool:
        requested = state["requested_micro_batch_size"]
        return self._shards is not None and requested != self.micro_batching.requested

    def _next(self, key: Key) -> tuple[Batch | None, list[Any]]:
        if key.size > 1:
            world.check_collective("a loop over a stream")
        stages.enter(Stage.LOADING if self._fetcher.is_at(key) else Stage.STARTING_TO_LOAD)
        batching = StreamBatching(self.effective_batch_size, key.cut, self._shards or 1)
        parts = batching.parts_of_worker(key.rank, key.size)
        global_states = random_state.capture()
        try:
            read = self._read(key, batching, parts)
        finally:
            random_state.restore(global_states)
        counts, samples = _exchanged(read, parts, batching.parts, key)
        batch = batching.batch(key.step, counts)
        if not batch.samples and key.step == 0 and key.rank == 0:
            warnings.warn(
                f"{type(self._dataset).__name__} gave no sample in epoch {key.epoch}, so the epoch has no "
                "step; check its source",
                stacklevel=2,
            )
        if not batch.samples or (self.drop_last and batch.samples < self.effective_batch_size):
            return None, []
        self._save(key, samples, parts, read.states)
        return batch, read.data

    def _read(self, key: Key, batching: StreamBatching, parts: range) -> StepRead:
        """Read the step and, where the stream is not there yet, what comes before it."""
        start = self._start(key)
        passed = 0 if self._fetcher.is_at(key) else start.steps_before(key)
        requests = partial(_requests, key, batching, parts, start, self._every)
        read: StepRead
        for read in self._fetcher.fetch(key, passed + 1, requests):
            stages.heartbeat()
            if self._snapshot is not None and not self._snapshot.agrees(read, parts):
                self._disagree(start, read)
                return self._read(key, batching, parts)
        return read

    def _disagree(self, start: "_Start", read: StepRead) -> None:
        """The stream has not given what it gave when the snapshot was taken.

        Raises:
            StateError: it was not begun in a state that may be the reason.
        """
        if start.states is None:
            raise StateError(
                f"in epoch {read.epoch}, the stream does not give what it gave before: its samples in step "
                f"{read.step} are others than when that step was trained. The samples of an epoch must "
                "follow from set_epoch(), random numbers and values of the state, and the files must be the "
                "same; or begin without this state"
            )
        self._states_are_exact = False
        warnings.warn(
            f"the state of {type(self._dataset).__name__} does not bring back what it gave after that state "
            "was taken (a shuffle buffer is not in the state of a Hugging Face stream), so the epoch is read "
            "from its beginning; leave snapshot_every_n_steps out",
            stacklevel=2,
        )

    def _start(self, key: Key) -> "_Start":
        """Where to begin to read, to get to a step."""
        saved = self._snapshot
        if saved is None or saved.states is None or not self._states_are_exact:
            return _Start(key.epoch, 0, None)
        is_of_epoch_before = saved.epoch == key.epoch - 1 and self._shards is None
        if saved.epoch != key.epoch and not is_of_epoch_before:
            return _Start(key.epoch, 0, None)
        return _Start(saved.epoch, saved.step, saved.states)

    def _save(self, key: Key, samples: list[int], parts: range, states: list[Any]) -> None:
        if self._every is None:
            self._snapshot = Snapshot(key.epoch, key.step, samples, None)
            return
        saved = self._snapshot
        if key.step % self._every or (
            saved is not None and (saved.epoch, saved.step) == (key.epoch, key.step)
        ):
            return
        if key.size > 1 and len(samples) > 1:  # each worker has the states of some parts only
            found = {}
            for each in collectives.gather(dict(zip(parts, states, strict=True))):
                found.update(each)
            states = [found[part] for part in range(len(samples))]
        has_states = all(state is not None for state in states)
        self._snapshot = Snapshot(key.epoch, key.step, samples, states if has_states else None)


class _Start(NamedTuple):
    """Where a stream begins to be read: before a step, in these states or, at an epoch's first, in none.

    A stream without shards may count its epochs itself: it is begun in the state that it had in the epoch
    before, reads that to its end, and goes on.
    """

    epoch: int
    step: int
    states: list[Any] | None

    def steps_before(self, key: Key) -> int:
        """Steps that are read on the way."""
        return key.step - self.step if self.epoch == key.epoch else 1 + key.step


def _requests(
    key: Key, batching: StreamBatching, parts: range, start: _Start, every: int | None
) -> Iterator[StepRequest]:
    """What a worker reads from `start` on; of steps before that of `key` it wants no samples."""
    nothing = StepRequest(key.seed, start.epoch, start.step, batching, parts, range(0), every)
    first, states = start.step, start.states
    if start.epoch < key.epoch:
        yield nothing._replace(states=states)
        first, states = 0, None
    for step in count(first):
        request = nothing._replace(epoch=key.epoch, step=step, states=states)
        yield (
            request
            if step < key.step
            else request._replace(slots=batching.slots_of_worker(key.rank, key.size))
        )
        states = None


def _exchanged(read: StepRead, parts: range, all_parts: int, key: Key) -> tuple[list[int], list[int]]:
    """Of every part, how many samples it gave, and a digest of the first. A collective.

    Raises:
        RuntimeError: workers got other samples from a part than others.
    """
    if key.size == 1:
        return read.counts, read.samples
    row = np.zeros(1, dtype=[(name, np.int64, (all_parts,)) for name in ("readers", "counts", "samples")])
    own = slice(parts.start, parts.stop)
    row["readers"][0, own], row["counts"][0, own], row["samples"][0, own] = 1, read.counts, read.samples
    rows = header.gather(row, f"edt.stream.{all_parts}")
    for part in range(all_parts):
        readers = np.flatnonzero(rows["readers"][:, part])
        found = [(rows["counts"][rank, part], rows["samples"][rank, part]) for rank in readers]
        others = [int(rank) for rank, each in zip(readers, found, strict=True) if each != found[0]]
        if others:
            raise RuntimeError(
                f"the workers do not get the same samples from their stream in step {key.step} of epoch "
                f"{key.epoch}: rank {', '.join(map(str, others))} gets others than rank {readers[0]}. The "
                "samples of an epoch must follow from set_epoch(), random numbers and values of the state; "
                "the stream must not divide itself by rank; the loader belongs into the TorchState; and all "
                "workers must see the same files"
            )
    return rows["counts"].max(axis=0).tolist(), rows["samples"].max(axis=0).tolist()


def _check(dataset: Any) -> None:
    if isinstance(dataset, Iterator):
        raise TypeError(
            f"the dataset is a {type(dataset).__name__}, an iterator, which is used up after one epoch; give "
            "an object whose __iter__ begins anew, such as a torch.utils.data.IterableDataset"
        )
    if getattr(dataset, "_distributed", None) is not None:
        raise TypeError(
            "split_dataset_by_node divides the stream among ranks, which ElasticDataLoader does itself, in "
            "every world anew; leave it out"
        )
