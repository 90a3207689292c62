"""Fetching what a worker asks for through torch's loader, which is begun anew when the world changes."""

import functools
import gc
import itertools
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.context import BaseContext
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from edt_hvd.data.batching import mixed_seed
from edt_hvd.data.samples import Probe, Probed, begin_loading, collate_request


class Key(NamedTuple):
    """All that what a worker asks for in the rest of an epoch follows from."""

    seed: int
    epoch: int
    step: int
    cut: int
    rank: int
    size: int


class _Requests:
    """The batch sampler under torch's loader, which may iterate over it more than once an epoch."""

    def __init__(self) -> None:
        self.begin: Callable[[], Iterator[Any]] = lambda: iter(())

    def __iter__(self) -> Iterator[Any]:
        return self.begin()


class Fetcher:
    """Fetches what is asked for in order, ahead of time where there are loading processes.

    Args:
        samples: is asked by ``__getitems__(request)``, and has the user's dataset in its ``dataset``.
        collate_fn, and so on: as for `edt_hvd.ElasticDataLoader`.

    Raises:
        ValueError: what torch's loader refuses.
    """

    def __init__(
        self,
        samples: Dataset[Any],
        *,
        num_workers: int,
        collate_fn: Callable[[list[Any]], Any] | None,
        pin_memory: bool,
        worker_init_fn: Callable[[int], None] | None,
        prefetch_factor: int | None,
        multiprocessing_context: str | BaseContext | None,
        timeout: float,
        persistent_workers: bool,
    ) -> None:
        self._samples = samples
        self._requests = _Requests()
        # Loading processes are seeded from it, so that torch's own loader leaves the global generator alone.
        self._generator = torch.Generator()
        self._options: dict[str, Any] = {
            "batch_sampler": self._requests,
            "generator": self._generator,
            "num_workers": num_workers,
            "collate_fn": functools.partial(collate_request, collate_fn or default_collate),
            "pin_memory": pin_memory and torch.cuda.is_available(),
            "worker_init_fn": functools.partial(begin_loading, worker_init_fn),
            "prefetch_factor": prefetch_factor,
            "multiprocessing_context": multiprocessing_context,
            "timeout": timeout,
            "persistent_workers": persistent_workers,
        }
        self._starts_anew = num_workers > 0 and not persistent_workers
        self._loader: DataLoader[Any] | None = DataLoader(samples, **self._options)
        # What is being loaded: `_results` gives what is asked for from `_next` on, None when unknown.
        self._results: Iterator[Any] = iter(())
        self._next: Key | None = None
        self.probed: Probed | None = None

    def begin_loop(self) -> bool:
        """End processes that know the dataset as it was earlier, and drop what they have prefetched.

        Processes that the user wants to be kept are kept. Returns whether there were to be others.
        """
        if self._starts_anew:
            self._results, self._next = iter(()), None
        return self._starts_anew

    def is_at(self, key: Key) -> bool:
        """Whether what has been prefetched is that of `key`."""
        return self._next == key

    def fetch(
        self, key: Key, count: int, requests: Callable[[], Iterator[Any]], probe: Probe | None = None
    ) -> Iterator[Any]:
        """What the samples answered, and the collate function made of it.

        Args:
            key: of the step; what was prefetched for another one is dropped.
            count: requests of this worker in the step.
            requests: gives the requests from this step to the end of the epoch.
            probe: is asked for before them; `probed` is the answer. Nothing prefetched is used then.
        """
        if probe is not None:
            results = self._restart(key, lambda: itertools.chain([probe], requests()))
        else:
            results = self._results if self.is_at(key) else self._restart(key, requests)
        self._next = None
        if probe is not None:
            self.probed = self._next_of(results)
        for _ in range(count):
            yield self._next_of(results)
        self._next = key._replace(step=key.step + 1)

    def probe(self, key: Key, probes: Sequence[Probe]) -> list[Probed]:
        """The answers to some probes. What has been prefetched is dropped."""
        self._next = None
        results = self._restart(key, lambda: iter(probes))
        return [self._next_of(results) for _ in probes]

    def _next_of(self, results: Iterator[Any]) -> Any:
        try:
            return next(results)
        except BaseException:
            self._loader = None  # its processes may be gone; the next iteration starts others
            raise

    def _restart(self, key: Key, requests: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        if self._loader is None:
            gc.collect()  # a failed iterator kept by its error stalls at its end, once other processes fork
            self._loader = DataLoader(self._samples, **self._options)
        self._requests.begin = requests
        self._generator.manual_seed(mixed_seed(key.seed, key.epoch, key.step, key.rank))
        self._results = iter(())  # ends earlier processes before others are started
        with torch.device("cpu"):  # the generator's, whatever the script's default is
            self._results = iter(self._loader)
        return self._results
