"""A job's events in words."""

import pytest

from edt_launch.core.history import events
from edt_launch.core.history.event_wording import describe


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
            events.Waiting(1, 3, 599.7, 2, (events.MissingWorker("h", 1, "failed", 4.9),)),
            (
                "waiting: 1 of at least 3 workers can run; for 600 s at most\n"
                "  slot 1 of h failed; it is tried again in 5 s\n"
                "  the allocation shows 2 slots"
            ),
        ),
        (events.Progress(1, None, 2), None),
    ],
)
def test_what_is_said_about_events(event, text):
    assert describe(event) == text
