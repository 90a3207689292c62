"""The demo's plan: which size is asked for when."""

import dataclasses

import pytest

from edt_launch.core import events
from edt_launch.tools.demo.scenario import DEMO, Progress, Stage, advance, is_complete, observe

PLAN = (Stage(0.0, 2), Stage(0.25, 4), Stage(0.5, 1))


def progress_event(step, size, **values):
    return events.Progress(step, 0, size, values)


def test_progress_events_tell_size_part_done_and_accuracy():
    progress = observe(Progress(), progress_event(30, 2, total_steps=120, accuracy=0.5))
    assert progress == Progress(stage=0, size=2, done=0.25, accuracy=0.5)


def test_what_an_event_does_not_tell_stays():
    before = Progress(stage=1, size=2, done=0.25, accuracy=0.5)
    assert observe(before, progress_event(40, 4)) == dataclasses.replace(before, size=4)


@pytest.mark.parametrize("event", [events.World(1, 4), events.Resumed(1, 2, 4, 0.5)])
def test_other_events_change_nothing(event):
    assert observe(Progress(size=2), event) == Progress(size=2)


def test_next_size_is_asked_for_when_the_training_has_come_as_far():
    assert advance(Progress(size=2, done=0.24), PLAN).stage == 0
    assert advance(Progress(size=2, done=0.25), PLAN).stage == 1


def test_next_size_waits_until_the_last_one_has_been_seen():
    assert advance(Progress(stage=1, size=2, done=0.9), PLAN).stage == 1
    assert advance(Progress(stage=1, size=4, done=0.9), PLAN).stage == 2


def test_nothing_is_due_before_the_first_step():
    assert advance(Progress(), PLAN) == Progress()


def test_nothing_follows_the_last_stage():
    last = Progress(stage=2, size=1, done=1.0)
    assert advance(last, PLAN) is last


def test_is_complete_when_the_last_size_was_seen():
    assert not is_complete(Progress(stage=1, size=4, done=1.0), PLAN)
    assert not is_complete(Progress(stage=2, size=4, done=1.0), PLAN)
    assert is_complete(Progress(stage=2, size=1, done=1.0), PLAN)


def test_the_demo_grows_and_shrinks():
    assert [stage.size for stage in DEMO] == [2, 4, 1, 3]
    assert [stage.at for stage in DEMO] == [0, 0.25, 0.5, 0.75]
