"""One run of the workers, folded from its events."""

from functools import reduce
from pathlib import Path

import pytest

from edt_launch.core.history.events import Failed, Progress, Started, World
from edt_launch.launcher.run_summary import Failures, RunSummary, describe_exits


def failed(worker, exit_code=1, signal=None, reason=""):
    return Failed(worker, f"node{worker}", 0, None, worker, exit_code, signal, reason)


WORLD = World(2, 1)
PROGRESS = Progress(7, None, 1)


def first(*events, **said):
    failures = reduce(Failures.observe, events, Failures())
    found = failures.first(lambda worker: (said.get(f"w{worker}", ""),))
    return None if found is None else found.worker


@pytest.mark.parametrize(
    "events, worker",
    [
        ((), None),
        ((failed(1), failed(0)), 1),
        ((failed(0, 143, "SIGTERM"), failed(1)), 1),
        ((failed(0, 130, "SIGINT"), failed(1, 143, "SIGTERM"), failed(2, 137, "SIGKILL")), 2),
        ((failed(0, 143, "SIGTERM"),), 0),
        ((failed(0), WORLD, PROGRESS, failed(1)), 1),
        ((failed(0), WORLD, failed(1)), 0),
        ((failed(0), PROGRESS, failed(1)), 0),
    ],
)
def test_the_first_that_the_job_has_not_survived_and_that_was_nobody_elses_doing(events, worker):
    assert first(*events) == worker


def test_who_lost_a_peer_was_not_the_first_to_fail():
    lost = "horovod.common.exceptions.HorovodInternalError: Connection closed by peer"
    assert first(failed(0), failed(1), w0=lost, w1="ValueError: boom") == 1
    assert first(failed(0), failed(1), w0=lost, w1=lost) == 0


def test_members_of_a_world_that_exit_well_by_themselves_are_named():
    started = [Started(worker, f"node{worker}", 0, None, worker) for worker in range(4)]
    world = World(3, 1, ranks={0: 0, 1: 1, 2: 2})
    early, newcomer = failed(1, 0), failed(3, 0)
    run = reduce(RunSummary.observe, [*started, world, early, newcomer, failed(2)], RunSummary())
    assert run.early_exits == (early,)
    assert describe_exits(run.early_exits, Path("log")).startswith(
        "the job succeeded, but rank 1 on node1 ended with exit code 0 in the middle of training"
    )
