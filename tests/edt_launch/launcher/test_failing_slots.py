from functools import reduce

import pytest

from edt_launch.core.history import events
from edt_launch.launcher.failing_slots import FailingSlots


def started(worker: int, slot: int) -> events.Event:
    return events.Started(worker, "node1", slot, None, 0)


def failed(worker: int, slot: int) -> events.Event:
    return events.Failed(worker, "node1", slot, None, 0, 1, retry_after=5.0)


STEP = events.Progress(1, 0, 1)
NEVER_TRAINED = [started(0, 1), failed(0, 1), started(1, 1), failed(1, 1)]
FIVE_SLOTS = [event for n in range(5) for event in (started(n, n), failed(n, n))]


@pytest.mark.parametrize(
    "happened, text",
    [
        (NEVER_TRAINED, "slot 1 of node1 (2 times)"),
        ([*NEVER_TRAINED, started(2, 1), events.World(2, 1, ranks={2: 0}), STEP], ""),
        ([started(0, 1), events.World(1, 1, ranks={0: 0}), failed(0, 1)], "slot 1 of node1 (1 time)"),
        ([*NEVER_TRAINED, events.AllocationAccepted(2, 1, (events.AllocatedHost("node1", 1),))], ""),
        ([started(0, 0), events.World(1, 1, ranks={0: 0}), STEP, failed(0, 0)], ""),
        (FIVE_SLOTS, f"{', '.join(f'slot {n} of node1 (1 time)' for n in range(4))} and 1 more"),
    ],
)
def test_slots_without_a_worker_that_trained(happened: list[events.Event], text: str) -> None:
    assert reduce(FailingSlots.observe, happened, FailingSlots()).text == text
