"""Fetching the samples of a micro-batch, each with random numbers of its own.

Wrapped around the user's dataset under torch's loader, in this process or in loading processes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, get_worker_info

from edt_hvd.data.randomness.seeding import Purpose, seed_for
from edt_hvd.digests import digest, parts_of


class Request(NamedTuple):
    """The samples of one micro-batch, and what their random numbers follow from.

    That is where they are in the epoch's order, not their numbers in the dataset: a sample that an epoch has
    several times gets other random numbers each time.
    """

    seed: int
    epoch: int
    positions: range
    indices: list[int]


class Probe(NamedTuple):
    """Asks what some samples are, to compare them between workers; each request is of one sample."""

    requests: tuple[Request, ...]


class Probed(NamedTuple):
    """The answer to a `Probe`: for each sample a digest, and its parts as `parts_of` gives them."""

    digests: list[int]
    parts: list[dict[str, str]]


class SeededSamples(Dataset[Any]):
    """Fetches a `Request`; augmentations draw the same numbers for a sample whoever fetches it and when."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self._draws = not _only_reads(dataset)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, request: Request | Probe) -> Any:
        """torch's loader fetches whole micro-batches through this."""
        if isinstance(request, Probe):
            samples = [sample for each in request.requests for sample in self.__getitems__(each)]
            return Probed([int(digest(each), 16) - 2**63 for each in samples], list(map(parts_of, samples)))
        samples = [
            self._fetch(request, position, index)
            for position, index in zip(request.positions, request.indices, strict=True)
        ]
        seed_for(Purpose.COLLATION, request.seed, request.epoch, request.positions.start)
        return samples

    def _fetch(self, request: Request, position: int, index: Any) -> Any:
        if self._draws:
            seed_for(Purpose.SAMPLE, request.seed, request.epoch, position)
        return self.dataset[index]


def _only_reads(dataset: Any) -> bool:
    """Whether fetching is known to draw no random numbers; seeding takes longer than reading a row."""
    if type(dataset) in (Subset, ConcatDataset):
        parts = dataset.datasets if isinstance(dataset, ConcatDataset) else [dataset.dataset]
        return all(_only_reads(part) for part in parts)
    return type(dataset) in (TensorDataset, list, tuple)


def collate_request(collate_fn: Callable[[list[Any]], Any], samples: Any) -> Any:
    """Make a micro-batch of its samples; the answer to a probe stays as it is."""
    return samples if isinstance(samples, Probed) else collate_fn(samples)


def begin_loading(worker_init_fn: Callable[[int], None] | None, worker: int) -> None:
    """What a loading process does first: show the user's dataset where torch would show the wrapper."""
    info = get_worker_info()
    if info is not None:
        object.__setattr__(info, "dataset", info.dataset.dataset)  # type: ignore[attr-defined]  # torch's own way around its guard
    if worker_init_fn is not None:
        worker_init_fn(worker)
