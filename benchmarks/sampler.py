"""How many samples of an epoch are lost and repeated when a job is resized 2 -> 4 -> 1 -> 3 -> 2 during it.

    python benchmarks/sampler.py

Plain Horovod: its own `ElasticSampler`, one per worker in this process, each told its rank and size, driven
as Horovod's elastic run loop (`horovod/common/elastic.py`) and its MNIST example drive it:

- every worker of the world takes one batch of its sampler, then calls `record_batch` and commits;
- a change of hosts ends the loop at a commit. If workers came (or went and came), the state is synchronized:
  rank 0's sampler state is loaded everywhere, which re-partitions what is left of the epoch;
- if workers only went, Horovod skips the synchronization (`HostsUpdatedInterrupt.skip_sync`), the survivors'
  samplers are not reset and keep the partition for the old number of workers. The loop over the data loader
  starts again, so what they had done since the last synchronization is done twice, and the part of the
  workers that went is never done.

EDT: its own `ElasticDataLoader`, one per worker in this process, told rank and size in the same way.

The resizes come at random times, at the same ones for both: parts of the epoch as the job itself counts them.
"""

import argparse
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import mean
from unittest import mock

from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.reduction import participants
from edt_hvd.world import world
from horovod.torch.elastic import sampler as horovod_sampler

SIZES = (2, 4, 1, 3, 2)


@dataclass(frozen=True)
class Usage:
    """Parts of an epoch's samples, in percent: never used, and uses beyond the first."""

    lost: float
    repeated: float


@contextlib.contextmanager
def seat(rank: int, size: int, generation: int) -> Iterator[None]:
    """What runs in here believes to be worker `rank` of `size`."""
    places = {"rank": rank, "size": size, "membership": generation, "max_size": max(SIZES)}
    with contextlib.ExitStack() as patches:
        for name in ("rank", "size"):
            patches.enter_context(mock.patch.object(horovod_sampler, name, lambda place=places[name]: place))
        for name, place in places.items():
            patches.enter_context(mock.patch.object(world, name, lambda place=place: place))
        patches.enter_context(mock.patch.object(participants, "active", tuple))
        yield


def plain_horovod(samples: int, batch: int, resizes: list[float]) -> Counter[int]:
    """How often each sample is used in one epoch with Horovod's sampler."""
    used: Counter[int] = Counter()
    workers: list[horovod_sampler.ElasticSampler] = []
    for size, until in zip(SIZES, [*resizes, 1.0], strict=True):
        joined = size > len(workers)
        workers = workers[:size]
        for rank in range(len(workers), size):
            with seat(rank, size, 0):
                workers.append(horovod_sampler.ElasticSampler(range(samples)))
        if joined:  # Horovod skips this when workers only went
            state = workers[0].state_dict()
            for rank, worker in enumerate(workers):
                with seat(rank, size, 0):
                    worker.load_state_dict(state)
        shares = [iter(worker) for worker in workers]
        while until == 1.0 or workers[0].processed_num < until * samples:
            taken = [list(islice(share, batch)) for share in shares]
            if not any(taken):
                break
            for worker, indices in zip(workers, taken, strict=True):
                used.update(indices)
                worker.record_batch(0, batch)
    return used


def edt(samples: int, batch: int, resizes: list[float]) -> Counter[int]:
    """How often each sample is used in one epoch with EDT's loader."""
    used: Counter[int] = Counter()
    workers: list[ElasticDataLoader] = []
    for generation, (size, until) in enumerate(zip(SIZES, [*resizes, 1.0], strict=True)):
        state = workers[0].state_dict() if workers else None
        workers = workers[:size]
        workers += [ElasticDataLoader(range(samples), batch * max(SIZES)) for _ in range(size - len(workers))]
        if state is not None:
            for worker in workers:
                worker.load_state_dict(state)
        epochs = [iter(worker) for worker in workers]
        while workers[0].position < until * len(workers[0]):
            for rank, epoch in enumerate(epochs):
                with seat(rank, size, generation):
                    for micro_batch in next(epoch):
                        used.update(micro_batch.tolist())
    return used


def usage(used: Counter[int], samples: int) -> Usage:
    """What part of an epoch was lost and repeated."""
    return Usage(100 * (samples - len(used)) / samples, 100 * (used.total() - len(used)) / samples)


def main() -> None:
    parser = argparse.ArgumentParser(description="Samples that a resized job loses and repeats.")
    parser.add_argument("--samples", type=int, default=10_000, help="samples in the data set")
    parser.add_argument("--batch", type=int, default=32, help="samples of one step of one worker")
    parser.add_argument("--runs", type=int, default=20, help="epochs, each resized at other times")
    args = parser.parse_args()
    generator = random.Random(0)
    times = [sorted(generator.uniform(0, 1) for _ in SIZES[1:]) for _ in range(args.runs)]
    schedule = " -> ".join(map(str, SIZES))
    print(f"{schedule} in one epoch of {args.samples} samples, {args.runs} runs, resized at random times")
    print(f"{'':15}{'lost, mean':>12}{'min-max':>16}{'repeated, mean':>18}{'min-max':>16}")
    for name, simulate in (("plain Horovod", plain_horovod), ("EDT", edt)):
        results = [usage(simulate(args.samples, args.batch, at), args.samples) for at in times]
        columns = [[result.lost for result in results], [result.repeated for result in results]]
        cells = [(f"{mean(part):.1f} %", f"{min(part):.1f}-{max(part):.1f} %") for part in columns]
        print(f"{name:15}{cells[0][0]:>12}{cells[0][1]:>16}{cells[1][0]:>18}{cells[1][1]:>16}")


if __name__ == "__main__":
    main()
