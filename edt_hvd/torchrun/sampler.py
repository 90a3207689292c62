"""A batch sampler for DistributedDataParallel that resumes inside an epoch on any number of ranks.

An epoch is a permutation of the data set that depends on the seed and the epoch alone. One step of all n
ranks uses the next ``batch_size * n`` positions of it, rank r those at r, r + n, r + 2n, ...: what has been
used is always a prefix of the epoch, so a single number says how far it is, and another number of ranks can
go on from there.

DDP needs the same number of batches on every rank, and none of them empty. So samples at the end of an epoch
that are fewer than the ranks join the step before: some ranks get one sample more. Only where an epoch is
resumed with fewer samples left than there are ranks, some samples are used twice.
"""

from collections.abc import Iterator, Mapping, Sized
from itertools import islice
from typing import Any

import torch
from torch import distributed
from torch.utils.data import Sampler

from edt_hvd.errors import StateError
from edt_hvd.torchrun.environment import rank_and_size


def step_end(length: int, position: int, per_rank: int, ranks: int) -> int:
    """The position in an epoch of `length` samples at which a step ends that begins at `position`."""
    full = position + per_rank * ranks
    return length if length - full < ranks else full


def rank_share(start: int, end: int, rank: int, ranks: int) -> range:
    """The positions of a step that are a rank's; one that is another rank's, too, where they are too few."""
    return range(start + rank, end, ranks) or range(start + rank % (end - start), end, ranks)


class ElasticBatchSampler(Sampler[list[int]]):
    """Gives each rank its batches of an epoch, ordered as by `DistributedSampler`, and knows the position.

    Use it as ``DataLoader(dataset, batch_sampler=sampler)`` and call `advance` after every batch::

        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            for inputs, targets in loader:
                ...
                optimizer.step()
                sampler.advance()

    `state_dict` is the same on all ranks, and fits any number of ranks and any batch size. Every sample of an
    epoch is used once; only when it is resumed with fewer samples left than there are ranks, some are used
    twice.

    Args:
        dataset: its length is all that is used.
        batch_size: samples of a batch of one rank. The last one of an epoch may be smaller, or have one more.
        shuffle: permute each epoch; otherwise samples come in the data set's order.
        seed: of the permutations.
        drop_last: leave out the samples at the end of an epoch that are fewer than a batch for each rank.
        num_replicas: number of ranks; by default that of the process group, or of the variable WORLD_SIZE.
        rank: by default that of the process group, or of the variable RANK.

    Attributes:
        epoch: the present epoch: after the last batch of one it is the next.
        position: samples of it that all ranks together have used.

    Raises:
        ValueError: the data set is empty, the batch size is less than 1, or there is no such rank.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        own_rank, size = (
            (distributed.get_rank(), distributed.get_world_size())
            if distributed.is_available() and distributed.is_initialized()
            else rank_and_size()
        )
        self._rank = own_rank if rank is None else rank
        self._ranks = size if num_replicas is None else num_replicas
        if not 0 <= self._rank < self._ranks:
            raise ValueError(
                f"rank={self._rank}: expected 0 to {self._ranks - 1}, as there are {self._ranks} ranks"
            )
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size}: expected 1 or more")
        self._length = len(dataset)
        if self._length == 0:
            raise ValueError("the data set is empty; expected at least one sample")
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._seed = seed
        self._drop_last = drop_last
        if drop_last and self._length < batch_size * self._ranks:
            raise ValueError(
                f"drop_last=True leaves nothing of {self._length} samples: a step of {self._ranks} ranks "
                f"takes {batch_size * self._ranks}; choose a smaller batch_size"
            )
        self.epoch = 0
        self.position = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that comes next: the present one goes on where it is, any other one begins."""
        if epoch != self.epoch:
            self.epoch, self.position = epoch, 0

    def __iter__(self) -> Iterator[list[int]]:
        """The batches that this rank has left in the present epoch; `advance` alone moves the position."""
        order = self._order()
        for start, end in self._steps():
            share = rank_share(start, end, self._rank, self._ranks)
            yield order[share.start : share.stop : share.step].tolist()

    def __len__(self) -> int:
        """Number of batches that are left in the present epoch, the same on every rank."""
        return sum(1 for _ in self._steps())

    def advance(self, batches: int = 1) -> None:
        """Note that every rank has used its next `batches` batches; after its last one an epoch is over.

        Raises:
            ValueError: `batches` is negative, or more than are left in the epoch.
        """
        ends = [end for _, end in islice(self._steps(), max(batches, 0) + 1)]
        if not 0 <= batches <= len(ends):
            raise ValueError(
                f"batches={batches}: expected 0 to {len(self)}, as many as are left in epoch {self.epoch}"
            )
        if batches == 0:
            return
        if batches == len(ends):
            self.epoch, self.position = self.epoch + 1, 0
        else:
            self.position = ends[batches - 1]

    def state_dict(self) -> dict[str, Any]:
        """Epoch, position, and what they refer to; plain values, the same on every rank."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "length": self._length,
            "seed": self._seed,
            "shuffle": self._shuffle,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called, maybe with another number of ranks or another batch size.

        Raises:
            StateError: the state is of another data set or another order, and so of other samples.
        """
        own = self.state_dict()
        for name in ("length", "seed", "shuffle"):
            if state[name] != own[name]:
                raise StateError(
                    f"the sampler's state has {name}={state[name]}, this sampler {name}={own[name]}: its "
                    "position would mean other samples; make the sampler as it was made for that state"
                )
        self.epoch, self.position = state["epoch"], state["position"]

    def _order(self) -> torch.Tensor:
        if not self._shuffle:
            return torch.arange(self._length)
        generator = torch.Generator().manual_seed(self._seed + self.epoch)
        return torch.randperm(self._length, generator=generator)

    def _steps(self) -> Iterator[tuple[int, int]]:
        start = self.position
        while start < self._length:
            if self._drop_last:
                end = start + self._batch_size * self._ranks
                if end > self._length:
                    return
            else:
                end = step_end(self._length, start, self._batch_size, self._ranks)
            yield start, end
            start = end
