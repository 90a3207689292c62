"""A job's events in words."""

import pytest

from edt_launch.launcher.view.wording import describe, workers


@pytest.mark.parametrize(
    "event, text",
    [
        ({"event": "world", "size": 4, "previous_size": None}, "4 workers training"),
        ({"event": "world", "size": 4, "previous_size": 2}, None),
        (
            {
                "event": "restarting",
                "reason": "rank 0 failed",
                "restart": 1,
                "of": 3,
                "has_checkpoint": True,
            },
            "restarting the job, 1 of 3 times: rank 0 failed",
        ),
        (
            {
                "event": "restarting",
                "reason": "rank 0 left",
                "restart": 2,
                "of": 3,
                "delay": 60.0,
                "has_checkpoint": False,
            },
            (
                "restarting the job, 2 of 3 times, in 60 s or when the allocation changes: rank 0 left; "
                "without a checkpoint, so from the beginning"
            ),
        ),
        (
            {"event": "restored", "step": 7, "path": "/p/step-00000007"},
            "going on from step 7: /p/step-00000007",
        ),
        (
            {"event": "checkpoint_skipped", "path": "/p", "reason": "it has no state.pt"},
            "checkpoint /p is skipped: it has no state.pt",
        ),
        (
            {"event": "checkpoint_failed", "reason": "/p: No space left on device"},
            "no checkpoint written: /p: No space left on device; training goes on",
        ),
        ({"event": "checkpointed", "step": 7, "again": False}, None),
        (
            {"event": "checkpointed", "step": 7, "again": True},
            "checkpoints are written again, the last at step 7",
        ),
        (
            {"event": "resumed", "from": 2, "to": 4, "pause": 0.234},
            "2 -> 4 workers, training paused for 0.23 s",
        ),
        (
            {"event": "failed", "rank": 1, "host": "h", "exit_code": 139, "signal": "SIGSEGV"},
            "rank 1 on h has failed: killed by SIGSEGV",
        ),
        (
            {"event": "failed", "rank": 1, "host": "h", "exit_code": 3, "signal": None},
            "rank 1 on h has failed: exit code 3",
        ),
        (
            {"event": "failed", "rank": 1, "host": "h", "exit_code": 3, "signal": None, "retry_after": 10.0},
            "rank 1 on h has failed: exit code 3; its slot is tried again in 10 s",
        ),
        (
            {"event": "failed", "rank": 1, "host": "h", "exit_code": 137, "reason": "rank 1 on h is silent"},
            "rank 1 on h is silent",
        ),
        (
            {"event": "leaving", "rank": 1, "host": "h", "reason": "SIGTERM"},
            "rank 1 on h has been told to leave: SIGTERM",
        ),
        (
            {
                "event": "slow_start",
                "workers": [{"host": "h", "slot": 1}, {"host": "g", "slot": 0}],
                "seconds": 30.1,
                "longest": 4.9,
                "waited": 60.0,
                "limit": 600.0,
            },
            (
                "still starting after 30 s (others took 5 s): slot 1 of h, slot 0 of g; after 60 s the "
                "others go on without; after 600 s they are ended and tried again (--ready-timeout)"
            ),
        ),
        (
            {
                "event": "slow_start",
                "workers": [{"host": "h", "slot": 1}],
                "seconds": 30.0,
                "longest": None,
                "waited": None,
                "limit": None,
            },
            (
                "still starting after 30 s (no worker has come to the elastic function yet): slot 1 of h; "
                "there is no limit to that (--ready-timeout sets one)"
            ),
        ),
        (
            {
                "event": "waiting",
                "have": 1,
                "need": 3,
                "seconds": 599.7,
                "allocated": 2,
                "missing": [{"host": "h", "slot": 1, "reason": "failed", "retry_after": 4.9}],
            },
            (
                "waiting: 1 of at least 3 workers can run; for 600 s at most\n"
                "  slot 1 of h failed; it is tried again in 5 s\n"
                "  the allocation shows 2 slots"
            ),
        ),
        (
            {"event": "allocation_accepted", "generation": 2, "slots": 3, "first": False},
            "allocation 2: 3 slots",
        ),
        ({"event": "allocation_accepted", "generation": 1, "slots": 3, "first": True}, None),
        ({"event": "allocation_rejected", "reason": "because"}, "allocation not followed: because"),
        (
            {"event": "warm_server", "host": "h", "refused": "because"},
            "workers on h start one by one, which takes longer: because",
        ),
        ({"event": "warm_server", "host": "h", "refused": None}, None),
        ({"event": "progress"}, None),
    ],
)
def test_what_is_said_about_events(event, text):
    assert describe(event) == text


def test_numbers_of_workers():
    assert [workers(size) for size in (None, 0, 1, 2)] == ["0 workers", "0 workers", "1 worker", "2 workers"]
