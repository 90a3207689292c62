"""What a worker sends once a second."""

import json

import pytest

from edt_hvd.world import activity, heartbeat
from edt_hvd.world.activity import ProcessSample
from edt_hvd.world.stages import Stage, Stages
from edt_messages.messages import encode


def test_a_heartbeat_says_what_is_done_for_how_long_and_what_it_has_taken_so_far() -> None:
    stages = Stages(0.0)
    stages.enter(Stage.LOADING, 1.0)
    stages.awake(2.0)
    stages.enter(Stage.COMPUTING, 3.0)
    stages.awake(3.0)
    stages.worked(3.25)
    stages.step, stages.call = 12, "edt_hvd.average()"
    assert json.loads(encode(heartbeat.heartbeat(3.5, stages))) == {
        "type": "heartbeat",
        "step": 12,
        "stage": "computing",
        "seconds": 0.5,
        "idle": 0.25,
        "stages": {"outside": [1, 1.0], "loading": [1, 2.0]},
        "call": "edt_hvd.average()",
    }


def test_who_does_nothing_for_longer_than_usual_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    stages, used, seen, idle = Stages(0.0), 0.0, None, {}
    monkeypatch.setattr(activity, "sample", lambda now: ProcessSample(now, {1: used}, is_busy=False))
    stages.enter(Stage.UPDATING, 0.0)
    for second in range(40):
        stages.awake(second)
        used += 0.5 if second == 20 else 0.0
        seen = heartbeat._note_work(second, stages, seen)
        idle[second] = stages.idle(second)
    assert [idle[second] for second in (5, 10, 11, 19, 20, 21, 39)] == [0, 0, 0, 8, 0, 1, 19]
    stages.enter(Stage.REDUCING, 40)
    stages.awake(80)
    assert heartbeat._note_work(80, stages, seen) is None
    assert stages.idle(80) == 0
