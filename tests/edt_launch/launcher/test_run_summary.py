"""One run of the workers, folded from its events."""

from functools import reduce

from edt_launch.core.events import Checkpointed, Failed, Finished, Ready, Started, World
from edt_launch.launcher.run_summary import RunSummary


def fold(*events):
    return reduce(RunSummary.observe, events, RunSummary(next_worker=4))


def failed(retry_after=None):
    return Failed(4, "h", 0, None, 0, 1, retry_after=retry_after)


def test_what_has_happened_in_a_run():
    run = fold(Started(4, "h", 0, None, 0), Started(5, "h", 1, None, 1))
    assert (run.has_started, run.has_been_ready, run.next_worker) == (True, False, 6)
    run = run.observe(Ready(4, 9)).observe(World(1, 2))
    assert (run.has_been_ready, run.has_trained, run.has_checkpointed) == (True, True, False)
    run = run.observe(Checkpointed(7, "/p", 1, 0.5))
    assert (run.has_checkpointed, run.has_returned) == (True, False)
    assert run.observe(Checkpointed(7, "/p", 1, 0.5, last=True)).has_returned
    assert run.reason == ""
    assert run.observe(Finished(1, "no more", left=True)).reason == "no more"


def test_only_a_failure_whose_slot_is_not_tried_again_ends_the_run():
    assert fold(failed()).is_fatal
    assert not fold(failed(5.0)).is_fatal
    assert not fold(failed(), failed(5.0)).is_fatal
    assert len(fold(failed(), failed(5.0)).failures.open) == 2
