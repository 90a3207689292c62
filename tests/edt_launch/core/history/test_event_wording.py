"""A job's events in words."""

import pytest

from edt_launch.core.history import events
from edt_launch.core.history.event_wording import describe

RANK_1 = (7, "h", 0, None, 1)


@pytest.mark.parametrize(
    "event, text",
    [
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
        (
            events.Waiting(1, 3, 599.7, 2, (events.MissingWorker("h", 1, "failed", 4.9),)),
            (
                "waiting: 1 of at least 3 workers can run; for 600 s at most\n"
                "  slot 1 of h failed; it is tried again in 5 s\n"
                "  the allocation shows 2 slots"
            ),
        ),
        (
            events.SlowStart((events.WorkerSlot(7, "h", 0, None),), 30.2, None, 400.0, 400.0),
            (
                "no worker has come to an elastic function after 30 s: slot 0 of h; "
                "after 400 s they are ended and tried again (--ready-timeout)"
            ),
        ),
        (
            events.SlowStart((events.WorkerSlot(7, "h", 0, None),), 30.2, 9.0, None, 600.0),
            (
                "still starting after 30 s (others took 9 s): slot 0 of h; "
                "after 600 s they are ended and tried again (--ready-timeout)"
            ),
        ),
        (events.Progress(1, None, 2), None),
    ],
)
def test_what_is_said_about_events(event, text):
    assert describe(event) == text
