"""Batches of a map-style dataset, whose samples have numbers: every worker fetches its own and no others."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from torch.utils.data import Dataset

from edt_hvd.data.batching import Batch
from edt_hvd.data.cutting import Cutting
from edt_hvd.data.fetching import Fetcher, Key
from edt_hvd.data.order import Order, Orders
from edt_hvd.data.samples import Request, SeededSamples
from edt_hvd.data.source import Position, Source
from edt_hvd.errors import StateError
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage


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
        orders: Orders,
        micro_batch_size: int | None,
        fetching: Callable[[Dataset[Any]], Fetcher],
    ) -> None:
        self.effective_batch_size = orders.effective_batch_size
        self.drop_last = orders.drop_last
        self.shuffle = orders.shuffle
        self.cutting = Cutting(orders.effective_batch_size, micro_batch_size)
        self._dataset = dataset
        self._orders = orders
        self._fetcher = fetching(SeededSamples(dataset))
        self._order: tuple[tuple[int, int], Order] | None = None
        self._latest: tuple[Position, Batch | None] | None = None

    def __len__(self) -> int:
        return len(self._orders)

    def begin_loop(self) -> None:
        """Have the dataset as it is now copied to loading processes."""
        self._fetcher.begin_loop()

    def batch(self, at: Position) -> Batch | None:
        """The batch, which follows from the epoch's order; a commit asks for it before the loop."""
        if self._latest is None or self._latest[0] != at:
            order = self._order_of(at)
            self._latest = at, _cut(order, self.cutting, at.step) if at.step < order.steps else None
        return self._latest[1]

    def checksum(self, at: Position) -> int:
        """That of the epoch's order."""
        return self._order_of(at).checksum

    def load(self, at: Position, batch: Batch) -> Iterator[Any]:
        """Fetch the micro-batches, or take what has been prefetched."""
        key = Key(*at, self.cutting.chosen, world.rank(), world.size())
        stages.enter(Stage.LOADING if self._fetcher.is_at(key) else Stage.STARTING_TO_LOAD)
        count = len(batch.share(key.rank, key.size))
        # Without `self`: of a cycle, the garbage collector closes the queues before it ends the loading
        # processes, which then look for their end every five seconds.
        return self._fetcher.fetch(key, count, partial(_requests, key, self._order_of(at), self.cutting))

    def state_dict(self) -> dict[str, Any]:
        """How batches are cut, and the state of a sampler."""
        return {**self.cutting.state_dict(), "sampler": self._orders.state_dict()}

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
        self.cutting.load_state_dict(state)
        self._order = self._latest = None

    def fixed_state(self) -> dict[str, Any]:
        """The length of the dataset, and the options of its order."""
        return {
            "dataset_length": len(self._dataset),  # type: ignore[arg-type]  # it has one, as was checked
            "effective_batch_size": self.effective_batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
        }

    def _order_of(self, at: Position) -> Order:
        if self._order is None or self._order[0] != (at.seed, at.epoch):
            self._order = (at.seed, at.epoch), self._orders.draw(at.seed, at.epoch)
        return self._order[1]


def _cut(order: Order, cutting: Cutting, step: int) -> Batch:
    positions = order.positions(step)
    return Batch.cut(step, positions, cutting.micro_batch_size(len(positions)))


def _requests(key: Key, order: Order, cutting: Cutting) -> Iterator[Request]:
    """What this worker loads from a step to the end of the epoch."""
    for step in range(key.step, order.steps):
        for micro_batch in _cut(order, cutting, step).share(key.rank, key.size):
            positions = micro_batch.positions
            yield Request(key.seed, key.epoch, positions, order.indices(positions))
