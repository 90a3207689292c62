"""The order in which an epoch uses the samples, and where its batches begin and end.

An order follows from the loader's seed and the number of the epoch, on every worker by itself. That of a
sampler is written down whole at the beginning of the epoch: position 5 is the fifth thing that the sampler
gave, whatever the number of workers.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from torch.utils.data.distributed import DistributedSampler

from edt_hvd.data.batching import Batching, check_positive, check_sizes, mixed_seed
from edt_hvd.data.randomness.random_state import capture, restore
from edt_hvd.data.randomness.seeding import Purpose, seed_for


@dataclass(frozen=True)
class EpochOrder:
    """The order of one epoch.

    Attributes:
        steps: batches in the epoch.
        checksum: 32 bits that differ where the order does.
        positions: gives the positions of a step's batch in the epoch; never empty.
        indices: gives what to ask the dataset for at these positions.
    """

    steps: int
    checksum: int
    positions: Callable[[int], range]
    indices: Callable[[range], list[Any]]


class OrderPolicy(ABC):
    """The orders of all epochs.

    Attributes:
        effective_batch_size: samples in a batch; None where a batch sampler says how many.
        drop_last: a short last batch is left out.
        shuffle: None where a sampler decides.
    """

    effective_batch_size: int | None = None
    drop_last = False
    shuffle: bool | None = None

    @property
    def fixed_steps(self) -> int | None:
        """Batches in every epoch; None where it may have another number in each."""
        return None

    @abstractmethod
    def __len__(self) -> int:
        """Batches in an epoch, as far as it is known before the epoch begins."""

    @abstractmethod
    def draw(self, seed: int, epoch: int) -> EpochOrder:
        """The order of that epoch."""

    def state_dict(self) -> dict[str, Any] | None:
        """The state of the sampler at the beginning of the epoch, if it has one."""
        return None

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:  # noqa: B027 - optional
        """Put the sampler into the state that it had at the beginning of an epoch."""


def orders_of(
    dataset: Dataset[Any],
    effective_batch_size: int | None,
    micro_batch_size: int | None,
    sampler: Iterable[Any] | None,
    batch_sampler: Iterable[Sequence[Any]] | None,
    shuffle: bool | None,
    drop_last: bool,
) -> OrderPolicy:
    """The orders that the arguments of `edt_hvd.ElasticDataLoader` describe.

    Raises:
        TypeError: a dataset without indices or length, arguments that exclude each other, or a size that is
            not a whole number.
        ValueError: a size out of range.
    """
    length = _length(dataset)
    chosen = [
        name
        for name, is_given in (
            ("shuffle=True", shuffle),
            ("sampler", sampler is not None),
            ("batch_sampler", batch_sampler is not None),
        )
        if is_given
    ]
    if len(chosen) > 1:
        raise TypeError(f"{' and '.join(chosen)} exclude each other; give one of them")
    if batch_sampler is not None:
        if effective_batch_size is not None or drop_last:
            raise TypeError(
                "a batch_sampler says which samples each step has; leave effective_batch_size and drop_last "
                "out"
            )
        if micro_batch_size is not None:
            check_positive("micro_batch_size", micro_batch_size)
        return SamplerOrderPolicy(batch_sampler, None, drop_last=False)
    if effective_batch_size is None:
        raise TypeError("give effective_batch_size, the samples of one optimizer step over all workers")
    check_sizes(effective_batch_size, micro_batch_size)
    if sampler is not None:
        return SamplerOrderPolicy(sampler, effective_batch_size, drop_last)
    return DatasetOrderPolicy(Batching(length, effective_batch_size, drop_last), shuffle is not False)


class DatasetOrderPolicy(OrderPolicy):
    """All samples of a dataset, in its own order or shuffled."""

    def __init__(self, batching: Batching, shuffle: bool) -> None:
        self.effective_batch_size = batching.effective_batch_size
        self.drop_last = batching.drop_last
        self.shuffle = shuffle
        self._batching = batching

    @property
    def fixed_steps(self) -> int:
        """Batches in every epoch."""
        return self._batching.steps

    def __len__(self) -> int:
        return self._batching.steps

    def draw(self, seed: int, epoch: int) -> EpochOrder:
        """The order, which is not made before it is asked for."""
        batching, shuffled_by = self._batching, (seed, epoch) if self.shuffle else None

        @cache
        def permutation() -> torch.Tensor:
            generator = torch.Generator().manual_seed(mixed_seed(seed, epoch))
            return torch.randperm(batching.dataset_length, generator=generator, device="cpu")

        def indices(positions: range) -> list[Any]:
            if shuffled_by is None:
                return list(positions)
            return permutation()[positions.start : positions.stop].tolist()

        checksum = zlib.crc32(repr((batching, shuffled_by)).encode())
        return EpochOrder(batching.steps, checksum, batching.positions, indices)


class SamplerOrderPolicy(OrderPolicy):
    """What a sampler gives, or in batches what a batch sampler gives.

    Args:
        sampler: gives the dataset's indices, or lists of them where `effective_batch_size` is None. Its
            random numbers are seeded by epoch: those of its ``generator`` and the global ones.
        effective_batch_size: samples in a batch; None for a batch sampler.
        drop_last: leave a short last batch out.

    Raises:
        TypeError: it is an iterator, which has one epoch only, or divides the samples among ranks.
    """

    def __init__(self, sampler: Iterable[Any], effective_batch_size: int | None, drop_last: bool) -> None:
        _check(sampler)
        self.effective_batch_size = effective_batch_size
        self.drop_last = drop_last
        self._sampler = sampler
        self._state: dict[str, Any] | None = self._sampler_state()

    def __len__(self) -> int:
        try:
            length = len(self._sampler)  # type: ignore[arg-type]  # torch's Sampler leaves the length to its subclasses
        except TypeError:
            raise TypeError(
                f"{type(self._sampler).__name__} has no length, so the steps of an epoch are not known "
                "before its end; give it a __len__, or do without len(loader)"
            ) from None
        return length if self.effective_batch_size is None else self._batching(length).steps

    def draw(self, seed: int, epoch: int) -> EpochOrder:
        """The order, as the sampler gives it now."""
        self._state = self._sampler_state()
        for each in _samplers(self._sampler):
            if callable(set_epoch := getattr(each, "set_epoch", None)):
                set_epoch(epoch)
        with _seeded(self._sampler, seed, epoch):
            drawn = list(self._sampler)
        if self.effective_batch_size is not None:
            batching = self._batching(len(drawn))
            ends = [min((step + 1) * self.effective_batch_size, len(drawn)) for step in range(batching.steps)]
            return _drawn_order(drawn, ends)
        batches = [list(batch) for batch in drawn]
        if empty := [number for number, batch in enumerate(batches) if not batch]:
            raise ValueError(
                f"batch {empty[0]} of {type(self._sampler).__name__} is empty; leave such batches out"
            )
        return _drawn_order(
            [index for batch in batches for index in batch], list(accumulate(map(len, batches)))
        )

    def state_dict(self) -> dict[str, Any] | None:
        """As it was when the present epoch's order was drawn."""
        return self._state

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Put the sampler, if it is one with a state, into that state."""
        self._state = dict(state) if state is not None else None
        if state is not None and hasattr(self._sampler, "load_state_dict"):
            self._sampler.load_state_dict(state)

    def _sampler_state(self) -> dict[str, Any] | None:
        stateful = hasattr(self._sampler, "state_dict") and hasattr(self._sampler, "load_state_dict")
        return dict(self._sampler.state_dict()) if stateful else None  # type: ignore[attr-defined]

    def _batching(self, samples: int) -> Batching:
        assert self.effective_batch_size is not None
        return Batching(samples, self.effective_batch_size, self.drop_last)


def _drawn_order(drawn: list[Any], ends: Sequence[int]) -> EpochOrder:
    """The order of indices that were drawn, in batches that end there."""
    found = drawn[: ends[-1]] if ends else []
    are_numbers = all(type(each) is int for each in found)
    content = np.asarray(found).tobytes() if are_numbers else repr(found).encode()
    checksum = zlib.crc32(np.asarray(ends).tobytes(), zlib.crc32(content))

    def positions(step: int) -> range:
        return range(ends[step - 1] if step else 0, ends[step])

    return EpochOrder(len(ends), checksum, positions, lambda these: drawn[these.start : these.stop])


def _samplers(sampler: Iterable[Any]) -> list[Any]:
    """The sampler, and the one in a batch sampler."""
    return [sampler, getattr(sampler, "sampler", None)]


def _check(sampler: Iterable[Any]) -> None:
    for each in _samplers(sampler):
        if isinstance(each, DistributedSampler):
            raise TypeError(
                "a DistributedSampler divides the samples among ranks, which ElasticDataLoader does itself, "
                "in every world anew; leave the sampler out, and set_epoch() with it"
            )
    if isinstance(sampler, Iterator):
        raise TypeError(
            f"the sampler is a {type(sampler).__name__}, an iterator, which is used up after one epoch; give "
            "an object whose __iter__ begins anew, such as a torch.utils.data.Sampler or a list"
        )


@contextmanager
def _seeded(sampler: Iterable[Any], seed: int, epoch: int) -> Iterator[None]:
    """Seed what a sampler draws from, and put everything back afterwards."""
    drawing = [each for each in _samplers(sampler) if hasattr(each, "generator")]
    generators = [each.generator for each in drawing]
    global_states = capture()
    seed_for(Purpose.ORDER, seed, epoch)
    for each in drawing:
        each.generator = torch.Generator().manual_seed(mixed_seed(Purpose.ORDER, seed, epoch))
    try:
        yield
    finally:
        for each, generator in zip(drawing, generators, strict=True):
            each.generator = generator
        restore(global_states)


def _length(dataset: Dataset[Any]) -> int:
    try:
        return len(dataset)  # type: ignore[arg-type]  # torch's Dataset leaves the length to its subclasses
    except TypeError:
        raise TypeError(
            f"{type(dataset).__name__} has no length; give a map-style dataset, with __getitem__ and "
            "__len__, or a stream, which is iterated over and has no __getitem__"
        ) from None
