"""Cutting the epochs of a stream, whose length is not known, into steps and micro-batches. Arithmetic only.

A stream may be read in *parts*, each of which gives samples one after another. Every step takes the same
number of samples from each part, for micro-batches of its own, so that a worker reads only the parts that its
micro-batches come from::

    step 0       |----|----|----|----|----|-|      effective_batch_size, in slots of micro_batch_size
    3 parts      |--- 0 ---|--- 1 ---|- 2 --|      whole slots, as evenly as they can be shared out
    2 workers    |----- 0 -----|----- 1 ----|      as in `edt_hvd.data.batching`

A part that has ended gives no more, and its slots stay empty or short. An epoch ends when all parts have.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edt_hvd.data.batching import Batch, balanced_run


@dataclass(frozen=True)
class StreamBatching:
    """How a stream is cut; the same for all epochs and worlds.

    Attributes:
        effective_batch_size: samples of a step, as long as all parts have enough.
        micro_batch_size: samples of each slot of a step but the last, which may have fewer.
        num_shards: parts that the stream can be read in, at most.
    """

    effective_batch_size: int
    micro_batch_size: int
    num_shards: int

    @property
    def slots(self) -> int:
        """Micro-batches in a step."""
        return -(-self.effective_batch_size // self.micro_batch_size)

    @property
    def parts(self) -> int:
        """Parts that the stream is read in: one slot of each step at least comes from each."""
        return min(self.num_shards, self.slots)

    def slots_of(self, part: int) -> range:
        """The slots that are filled from a part."""
        return range(-(-part * self.slots // self.parts), -(-(part + 1) * self.slots // self.parts))

    def capacity(self, slot: int) -> int:
        """Samples of a slot, as long as its part has enough."""
        return min(self.micro_batch_size, self.effective_batch_size - slot * self.micro_batch_size)

    def width(self, part: int) -> int:
        """Samples that a step takes from a part."""
        return sum(map(self.capacity, self.slots_of(part)))

    def slots_of_worker(self, rank: int, size: int) -> range:
        """The slots whose micro-batches worker `rank` of `size` computes."""
        return balanced_run(self.slots, rank, size)

    def parts_of_worker(self, rank: int, size: int) -> range:
        """The parts that these slots are filled from."""
        slots = self.slots_of_worker(rank, size)
        return range(self._part(slots[0]), self._part(slots[-1]) + 1) if slots else range(0)

    def positions(self, step: int, slot: int, count: int) -> range:
        """The positions in the epoch's order of the samples of a slot with `count` of them."""
        start = step * self.effective_batch_size + slot * self.micro_batch_size
        return range(start, start + count)

    def batch(self, step: int, counts: Sequence[int]) -> Batch:
        """The batch of a step that got `counts` samples from the parts; each fills its slots in order."""
        slots = []
        for part, count in enumerate(counts):
            left = count
            for slot in self.slots_of(part):
                filled = min(left, self.capacity(slot))
                slots.append(self.positions(step, slot, filled))
                left -= filled
        return Batch(step, tuple(slots))

    def _part(self, slot: int) -> int:
        return slot * self.parts // self.slots
