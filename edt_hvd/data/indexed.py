"""Batches of a map-style dataset, whose samples have numbers: every worker fetches its own and no others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from edt_hvd.data.batching import Batch
from edt_hvd.data.fetching import Fetcher, Key
from edt_hvd.data.micro_batching import MicroBatching
from edt_hvd.data.order import EpochOrder, OrderPolicy
from edt_hvd.data.samples import Probe, Request, SeededSamples
from edt_hvd.data.source import Position, Source
from edt_hvd.errors import StateError
from edt_hvd.reduction import comparison, header
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage

PROBED = 4
"""Samples, at most, that each worker fetches in its first step of a world, to compare them."""

REPEATED = 8
"""How often samples that differ are fetched again, to see whether a worker's own stay the same."""


class IndexedSource(Source):
    """Cuts the orders of a dataset's samples into batches.

    Args:
        dataset: has a length, and samples by index.
        orders: of the samples.
        micro_batch_size: as for `edt_hvd.ElasticDataLoader`.
        fetching: how samples are fetched, as for `Fetcher`.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        orders: OrderPolicy,
        micro_batch_size: int | None,
        fetching: Callable[[Dataset[Any]], Fetcher],
    ) -> None:
        self.effective_batch_size = orders.effective_batch_size
        self.drop_last = orders.drop_last
        self.shuffle = orders.shuffle
        self.micro_batching = MicroBatching(orders.effective_batch_size, micro_batch_size)
        self._dataset = dataset
        self._orders = orders
        self._fetcher = fetching(SeededSamples(dataset))
        self._order: tuple[tuple[int, int], EpochOrder] | None = None
        self._latest: tuple[Position, Batch | None] | None = None
        self._compared_in: int | None = None
        """The generation of the world in which samples were compared last."""

    def __len__(self) -> int:
        return len(self._orders)

    def begin_loop(self) -> None:
        """Have the dataset as it is now copied to loading processes."""
        self._fetcher.begin_loop()

    def batch(self, at: Position) -> Batch | None:
        """The batch, which follows from the epoch's order; a commit asks for it before the loop."""
        if self._latest is None or self._latest[0] != at:
            order = self._order_of(at)
            self._latest = at, _cut(order, self.micro_batching, at.step) if at.step < order.steps else None
        return self._latest[1]

    def checksum(self, at: Position) -> int:
        """That of the epoch's order."""
        return self._order_of(at).checksum

    def load(self, at: Position, batch: Batch) -> Iterator[Any]:
        """Fetch the micro-batches, or take what has been prefetched."""
        key = Key(*at, self.micro_batching.chosen, world.rank(), world.size())
        stages.enter(Stage.LOADING if self._fetcher.is_at(key) else Stage.STARTING_TO_LOAD)
        count = len(batch.share(key.rank, key.size))
        # Without `self`: of a cycle, the garbage collector closes the queues before it ends the loading
        # processes, which then look for their end every five seconds.
        requests = partial(_requests, key, self._order_of(at), self.micro_batching)
        return self._fetcher.fetch(key, count, requests, self._probe(at) if self._is_to_compare() else None)

    def comparison(self, at: Position) -> Callable[[], None] | None:
        """Compares the samples that a step's `load` has asked for, in the loader's first step of a world."""
        return partial(self._compare, at) if self._is_to_compare() else None

    def _is_to_compare(self) -> bool:
        return self._compared_in != world.membership() and world.size() > 1

    def _probe(self, at: Position) -> Probe:
        order = self._order_of(at)
        positions = order.positions(at.step)
        last = len(positions) - 1
        chosen = dict.fromkeys(positions[number * last // (PROBED - 1)] for number in range(PROBED))
        return Probe(tuple(_request(at, order, range(each, each + 1)) for each in chosen))

    def _compare(self, at: Position) -> None:
        """Compare some samples of a step between the workers. A collective.

        Where they differ, they are fetched again: what differs on a worker itself, as augmentation from
        generators of a dataset's own does, is not compared.

        Raises:
            RuntimeError: on every worker, their datasets have other samples.
        """
        self._compared_in = world.membership()
        first = self._fetcher.probed
        assert first is not None
        digests = _gathered(first.digests, "edt.samples")
        if (digests == digests[0]).all():
            return
        probe = self._probe(at)
        key = Key(*at, self.micro_batching.chosen, world.rank(), world.size())
        again = self._fetcher.probe(key, [probe] * REPEATED)
        changing = [
            any(each.digests[number] != own for each in again) for number, own in enumerate(first.digests)
        ]
        is_compared = (_gathered(changing, "edt.samples.changing").sum(axis=0) == 0).tolist()
        here = {
            f"the sample dataset[{request.indices[0]!r}]{label}": text
            for request, parts, wanted in zip(probe.requests, first.parts, is_compared, strict=False)
            if wanted
            for label, text in parts.items()
        }
        kind = {"the dataset": f"a {type(self._dataset).__name__} of {len(self._dataset)} samples"}  # type: ignore[arg-type]
        found = comparison.first_difference(lambda: {**kind, **here}, "samples.description")
        if found is not None:
            raise RuntimeError(
                f"the workers' datasets are not the same: {found}. Each worker makes its own, so make it "
                "from what is the same everywhere: call torch.manual_seed before random_split and whatever "
                "else draws, sort the files of a folder and the elements of a set, give all hosts the same "
                "files, and leave out of a sample what belongs to a process or host, such as its own path"
            )

    def state_dict(self) -> dict[str, Any]:
        """How batches are cut, and the state of a sampler."""
        return {**self.micro_batching.state_dict(), "sampler": self._orders.state_dict()}

    def check(self, state: Mapping[str, Any]) -> None:
        """Check that the epoch has the state's step, where the number of steps is known."""
        steps = self._orders.fixed_steps
        if steps is not None and state["step"] > steps:
            raise StateError(
                f"loader state has step={state['step']}, but epochs have {steps} steps; load what "
                "ElasticDataLoader.state_dict() gave"
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Draw the order anew, by a sampler in the state that it had at the beginning of the epoch."""
        self._orders.load_state_dict(state["sampler"])
        self.micro_batching.load_state_dict(state)
        self._order = self._latest = None

    def fixed_state(self) -> dict[str, Any]:
        """The length of the dataset, and the options of its order."""
        return {
            "dataset_length": len(self._dataset),  # type: ignore[arg-type]  # it has one, as was checked
            "effective_batch_size": self.effective_batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
        }

    def _order_of(self, at: Position) -> EpochOrder:
        if self._order is None or self._order[0] != (at.seed, at.epoch):
            self._order = (at.seed, at.epoch), self._orders.draw(at.seed, at.epoch)
        return self._order[1]


def _cut(order: EpochOrder, micro_batching: MicroBatching, step: int) -> Batch:
    positions = order.positions(step)
    return Batch.cut(step, positions, micro_batching.micro_batch_size(len(positions)))


def _requests(key: Key, order: EpochOrder, micro_batching: MicroBatching) -> Iterator[Request]:
    """What this worker loads from a step to the end of the epoch."""
    for step in range(key.step, order.steps):
        for micro_batch in _cut(order, micro_batching, step).share(key.rank, key.size):
            yield _request(key, order, micro_batch.positions)


def _request(at: Key | Position, order: EpochOrder, positions: range) -> Request:
    return Request(at.seed, at.epoch, positions, order.indices(positions))


def _gathered(values: Sequence[int], name: str) -> NDArray[np.int64]:
    """Up to `PROBED` numbers of every worker, by rank. A collective."""
    row = np.zeros(1, dtype=[("values", np.int64, (PROBED,))])
    row["values"][0, : len(values)] = values
    return header.gather(row, name)["values"]
