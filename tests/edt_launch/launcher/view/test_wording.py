"""A job's events in words."""

import pytest

from edt_launch.core import events
from edt_launch.launcher.view.wording import describe, workers

SLOTS = events.WorkerSlot(1, "h", 1, None), events.WorkerSlot(2, "g", 0, None)
RANK_1 = (7, "h", 0, None, 1)


@pytest.mark.parametrize(
    "event, text",
    [
        (events.World(1, 4), "4 workers training"),
        (
            events.Restarting("rank 0 left", 60.0, 2, 3, has_checkpoint=False),
            (
                "restarting the job, 2 of 3 times, in 60 s or when the allocation changes: rank 0 left; "
                "without a checkpoint, so from the beginning"
            ),
        ),
        (
            events.Failed(*RANK_1, 3, retry_after=10.0),
            "rank 1 on h has failed: exit code 3; its slot is tried again in 10 s",
        ),
        (events.Failed(*RANK_1, 137, reason="rank 1 on h is silent"), "rank 1 on h is silent"),
        (
            events.SlowStart(SLOTS, 30.1, 4.9, 60.0, 600.0),
            (
                "still starting after 30 s (others took 5 s): slot 1 of h, slot 0 of g; after 60 s the "
                "others go on without; after 600 s they are ended and tried again (--ready-timeout)"
            ),
        ),
        (
            events.Waiting(1, 3, 599.7, 2, (events.MissingWorker("h", 1, "failed", 4.9),)),
            (
                "waiting: 1 of at least 3 workers can run; for 600 s at most\n"
                "  slot 1 of h failed; it is tried again in 5 s\n"
                "  the allocation shows 2 slots"
            ),
        ),
        (events.AllocationRejected("because"), "allocation not followed: because"),
        (
            events.WarmServer("h", 7, 1.0, (), refused="because"),
            "workers on h start one by one, which takes longer: because",
        ),
        (events.Progress(1, None, 2), None),
    ],
)
def test_what_is_said_about_events(event, text):
    assert describe(event) == text


def test_numbers_of_workers():
    assert [workers(size) for size in (None, 0, 1, 2)] == ["0 workers", "0 workers", "1 worker", "2 workers"]
