"""One run of the workers, folded from its events."""

from functools import reduce

from edt_launch.launcher.run_summary import Course


def fold(*events):
    return reduce(Course.observe, events, Course(next_worker=4))


def failed(**content):
    return {"event": "failed", "worker": 4, "host": "h", "rank": 0, "exit_code": 1, **content}


def test_a_runs_course():
    course = fold({"event": "started", "worker": 4}, {"event": "started", "worker": 5})
    assert (course.has_started, course.has_been_ready, course.next_worker) == (True, False, 6)
    course = course.observe({"event": "ready", "worker": 4}).observe({"event": "world"})
    assert (course.has_been_ready, course.has_trained, course.has_checkpointed) == (True, True, False)
    course = course.observe({"event": "checkpointed", "last": False})
    assert (course.has_checkpointed, course.has_returned) == (True, False)
    assert course.observe({"event": "checkpointed", "last": True}).has_returned
    assert course.observe({"event": "finished", "left": True}).has_left


def test_only_a_failure_whose_slot_is_not_tried_again_ends_the_run():
    assert fold(failed()).is_fatal
    assert not fold(failed(retry_after=5.0)).is_fatal
    assert not fold(failed(), failed(retry_after=5.0)).is_fatal
    assert len(fold(failed(), failed(retry_after=5.0)).failures.open) == 2
