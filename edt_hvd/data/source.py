"""Where a loader's batches come from: from samples by number, or from a stream of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from edt_hvd.data.batching import Batch
from edt_hvd.data.micro_batching import MicroBatching


class Position(NamedTuple):
    """A step of all that a loader may give."""

    seed: int
    epoch: int
    step: int


class Source(ABC):
    """The batches of all epochs, and the data of this worker's micro-batches.

    Attributes:
        effective_batch_size: samples in a batch; None where a batch sampler says how many.
        drop_last: a short last batch is left out.
        shuffle: whether the loader draws the order; None where a sampler decides.
        micro_batching: how a batch is cut into micro-batches.
    """

    effective_batch_size: int | None
    drop_last: bool
    shuffle: bool | None
    micro_batching: MicroBatching

    @abstractmethod
    def __len__(self) -> int:
        """Batches in an epoch, as far as it is known before the epoch begins."""

    @abstractmethod
    def begin_loop(self) -> None:
        """A loop over the loader begins, or has used up its epoch: end processes that are not to be kept."""

    @abstractmethod
    def batch(self, at: Position) -> Batch | None:
        """The batch at a position; None behind the epoch's last. May be a collective."""

    @abstractmethod
    def checksum(self, at: Position) -> int:
        """32 bits that must be the same on every worker in a step."""

    def comparison(self, at: Position) -> Callable[[], None] | None:
        """What compares the workers' datasets after a pass over the step; None: nothing is to be done."""
        return None

    @abstractmethod
    def load(self, at: Position, batch: Batch) -> Iterator[Any]:
        """Begin to load the data of this worker's share of the batch."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """What belongs to the position besides seed, epoch and step; plain values."""

    @abstractmethod
    def check(self, state: Mapping[str, Any]) -> None:
        """Check that a state's position means something here.

        Raises:
            StateError: it does not.
        """

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""

    @abstractmethod
    def fixed_state(self) -> dict[str, Any]:
        """What must stay as it is for a position to mean the same."""
