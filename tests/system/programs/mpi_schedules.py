"""The three trainings of models.py in worlds that are parts of MPI_COMM_WORLD, one after another.

mpi_schedules.py OUT CHANGES

CHANGES is JSON as in scheduled.py. It is run by as many processes as the largest world has workers.
Which of them form a world is drawn at random, but at least one of them has been in the world before; it gives
the others the state.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import horovod.torch as hvd
from journal import Journal
from models import ALL_STEPS, Training, as_state, in_turn, make, steps_done
from mpi4py import MPI

import edt_hvd
from edt_hvd.reduction import reducer

EVERYBODY = MPI.COMM_WORLD


def stretches(runs: list[list[list[int]]]) -> Iterator[tuple[int, int, int]]:
    """The run, the size of the world and the step of the run where that stretch of it ends."""
    size = EVERYBODY.size
    for run, changes in enumerate(runs):
        ends = [*(at for at, _ in changes), ALL_STEPS]
        sizes = [size, *(size for _, size in changes)]
        yield from ((run, size, end) for size, end in zip(sizes, ends, strict=True))
        size = sizes[-1]


def choose(generator: random.Random, members: list[int], size: int) -> list[int]:
    """The members of the next world, those of the present one first."""
    chosen = [generator.choice(members)]
    others = [rank for rank in range(EVERYBODY.size) if rank not in chosen]
    chosen += generator.sample(others, size - 1)
    return sorted(chosen, key=lambda rank: rank not in members)


def form(members: list[int]) -> bool:
    """Form a world of these processes; whether this one is in it."""
    hvd.shutdown()
    here = EVERYBODY.rank
    if here not in members:
        EVERYBODY.Split(MPI.UNDEFINED)
        return False
    hvd.init(comm=EVERYBODY.Split(0, key=members.index(here)))
    reducer.reset()
    return True


def wait_for_everybody() -> None:
    """A barrier that leaves the processor to those who still train."""
    request = EVERYBODY.Ibarrier()
    while not request.Test():
        time.sleep(0.005)


def train(run: int, trainings: list[Training], journal: Journal, state: edt_hvd.TorchState, end: int) -> None:
    for training in in_turn(trainings):
        journal.write(run, training)
        state.commit()
        if steps_done(trainings) == end:
            return


def main() -> None:
    out, runs = Path(sys.argv[1]), json.loads(sys.argv[2])
    edt_hvd.init(deterministic=True)
    trainings = make()
    state, beginning = as_state(trainings), as_state(trainings)
    beginning.save()
    journal = Journal(out)
    generator = random.Random(0)
    members = list(range(EVERYBODY.size))
    for run, size, end in stretches(runs):
        members = choose(generator, members, size)
        if form(members):
            state.sync()
            train(run, trainings, journal, state, end)
            if end == ALL_STEPS:
                beginning.restore()
        wait_for_everybody()


if __name__ == "__main__":
    main()
