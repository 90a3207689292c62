"""Runs written by hand, for the tests of what judges them."""

import copy

from edt_launch.tools.verify.records import KINDS, Record, RecordedRun
from edt_launch.tools.verify.schedules import Schedule

ONE, TWO, GROWN = Schedule((1,)), Schedule((2,)), Schedule((1, 2), (1,))
HOLDS = {"model": "Sequential", "optimizer": "SGD", "epoch": "int"}


def run(schedule=ONE, suffix="", steps=3, changes=(), reductions=("exact",)):
    """A run whose digests follow from step and name, but for `changes`: (first step, rank, kind, name)."""
    records = []
    for step in range(steps + 1):
        size = schedule.sizes[sum(step >= hold + 2 for hold in schedule.holds)]
        for rank in range(size):
            digests = copy.deepcopy({kind: dict.fromkeys(NAMES[kind], str(step)) for kind in KINDS})
            for first, worker, kind, name in changes:
                if step >= first and rank == worker:
                    digests[kind][name] = "changed"
            records.append(Record(step, rank, size, digests))
    return RecordedRun(f"{schedule}{suffix}", schedule, tuple(records), reductions, HOLDS)


NAMES = {
    "parameters": ("model.0.weight", "model.0.bias"),
    "buffers": ("model.1.running_mean",),
    "optimizer": ("optimizer.exp_avg[model.0.weight]",),
    "loss": ("step.loss",),
    "values": ("epoch",),
}
WEIGHT = ("parameters", "model.0.weight")
BIAS = ("parameters", "model.0.bias")
BUFFER = ("buffers", "model.1.running_mean")
