"""Reading a stream step by step, each sample with random numbers of its own.

The reader takes the dataset's place under torch's loader, in this process or in a loading process.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch.utils.data import Dataset, IterableDataset, default_collate

from edt_hvd.data.randomness.seeding import Purpose, seed_for
from edt_hvd.data.streams.stream_batching import StreamBatching
from edt_hvd.digests import digest
from edt_hvd.errors import StateError


class Snapshot(NamedTuple):
    """Where the parts of a stream were before a step, to go on from there; plain values and states.

    Attributes:
        epoch: of the step.
        step: its number in the epoch.
        samples: for each part, a digest of its samples in the step, as in a `StepRead`.
        states: for each part, the stream's own state before the step; None where that is not to be used.
    """

    epoch: int
    step: int
    samples: list[int]
    states: list[Any] | None

    def agrees(self, read: "StepRead", parts: range) -> bool:
        """Whether what was read from these parts is what it was then, as far as the snapshot knows."""
        if (read.epoch, read.step) != (self.epoch, self.step):
            return True
        return read.samples == [self.samples[part] for part in parts]


class StepRequest(NamedTuple):
    """What a worker reads for a step.

    Attributes:
        seed: of the random numbers.
        epoch: of the step.
        step: its number in the epoch.
        batching: of the stream.
        parts: that are read.
        slots: whose samples are wanted; those of others are dropped.
        snapshot_every: steps from one snapshot to the next; None for no snapshots.
        states: the parts' states before the step, where they are known; else parts that do not happen to be
            there are read from the beginning of the epoch, so this must be its first step.
    """

    seed: int
    epoch: int
    step: int
    batching: StreamBatching
    parts: range
    slots: range
    snapshot_every: int | None
    states: list[Any] | None = None

    @property
    def is_of_snapshot(self) -> bool:
        """Whether there is a snapshot before the step."""
        return self.snapshot_every is not None and self.step % self.snapshot_every == 0


class StepRead(NamedTuple):
    """What was read for a step.

    Attributes:
        epoch: of the step.
        step: its number in the epoch.
        counts: samples that each of the worker's parts gave.
        samples: a digest of the first of them or, in a step with a snapshot, of all; 0 where there is none.
        states: in a step with a snapshot, the parts' own states before it, each None if there is none.
        data: of each of the worker's slots that has samples, what the collate function made of them.
    """

    epoch: int
    step: int
    counts: list[int]
    samples: list[int]
    states: list[Any]
    data: list[Any]


class StreamReader(Dataset[Any]):
    """Reads a stream, in the parts that its ``shard(num_shards, index)`` gives if it has that.

    Args:
        dataset: the stream.
        collate_fn: makes a micro-batch of a list of samples; default is torch's.
    """

    def __init__(self, dataset: Any, collate_fn: Callable[[list[Any]], Any] | None) -> None:
        self.dataset = dataset
        self._collate = default_collate if collate_fn is None else collate_fn
        self._open: dict[int, _Part] = {}

    def __getitems__(self, request: StepRequest) -> StepRead:
        """torch's loader asks for a step through this."""
        read = StepRead(request.epoch, request.step, [], [], [], [])
        try:
            for number in request.parts:
                self._read(request, number, read)
        except BaseException:
            self._open.clear()  # an iterator that has failed gives nothing any more
            raise
        return read

    def _read(self, request: StepRequest, number: int, read: StepRead) -> None:
        part = self._part(request, number)
        if request.is_of_snapshot:
            read.states.append(part.state())
        batching, digests, count = request.batching, list[str](), 0
        for slot in batching.slots_of(number):
            samples = []
            for sample in part.take(batching.positions(request.step, slot, batching.capacity(slot))):
                if request.is_of_snapshot or not digests:
                    digests.append(digest(sample))
                count += 1
                if slot in request.slots:
                    samples.append(sample)
            if samples:
                start = batching.positions(request.step, slot, 1).start
                seed_for(Purpose.COLLATION, request.seed, request.epoch, start)
                read.data.append(self._collate(samples))
        part.step += 1
        read.counts.append(count)
        read.samples.append(int(digest(digests), 16) >> 1 if digests else 0)

    def _part(self, request: StepRequest, number: int) -> "_Part":
        at = request.seed, request.epoch, request.step
        found = self._open.get(number)
        if found is not None and (found.seed, found.epoch, found.step) == at and request.states is None:
            return found
        stream = self.dataset
        if num_shards(stream) is not None:
            stream = stream.shard(request.batching.parts, number)
        elif found is not None and found.epoch == request.epoch - 1:
            found.exhaust()  # so that a stream that counts its epochs itself goes on to the next
        state = None if request.states is None else request.states[number]
        self._open[number] = opened = _Part(stream, *at, number, state)
        return opened


class _Part:
    """One part of a stream in one epoch, from the beginning of a step on."""

    def __init__(self, stream: Any, seed: int, epoch: int, step: int, number: int, state: Any) -> None:
        self.seed = seed
        self.epoch = epoch
        self.step = step
        if callable(set_epoch := getattr(stream, "set_epoch", None)):
            set_epoch(epoch)
        seed_for(Purpose.ORDER, seed, epoch, number)
        self._iterator = iter(stream)
        self._stateful = next(filter(_is_stateful, (self._iterator, stream)), None)
        if state is not None:
            if self._stateful is None:
                raise StateError(
                    f"the loader's state has a state of its stream, but {type(stream).__name__} has no "
                    "state_dict and load_state_dict; give it both, or begin without this state"
                )
            self._stateful.load_state_dict(state)
            if self._stateful is stream:
                self._iterator = iter(stream)

    def take(self, positions: range) -> Iterator[Any]:
        """The samples of these positions in the epoch, or fewer at the part's end."""
        for position in positions:
            seed_for(Purpose.SAMPLE, self.seed, self.epoch, position)
            try:
                sample = next(self._iterator)
            except StopIteration:
                return
            yield sample

    def state(self) -> Any:
        """The stream's own state; None if it has none."""
        return None if self._stateful is None else copy.deepcopy(self._stateful.state_dict())

    def exhaust(self) -> None:
        """Read to the end of the epoch."""
        for _ in self._iterator:
            pass


def is_stream(dataset: Any) -> bool:
    """Whether a dataset gives its samples one after another and has none by number."""
    if isinstance(dataset, IterableDataset):
        return True
    return hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__")


def num_shards(stream: Any) -> int | None:
    """The number of parts that a stream can be read in; None if it has no ``shard(num_shards, index)``."""
    return stream.num_shards if hasattr(stream, "num_shards") and hasattr(stream, "shard") else None


def as_read(reads: list[StepRead]) -> StepRead:
    """The collate function under torch's loader: what was read is collated already."""
    return reads  # type: ignore[return-value]  # `__getitems__` gives one thing for a request, not a list


def _is_stateful(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")
