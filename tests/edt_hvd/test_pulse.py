"""What a worker tells once a second."""

import json

from edt_hvd import pulse
from edt_hvd.stages import Stage, Stages


def test_a_beat_says_what_is_done_for_how_long_and_what_it_has_taken_so_far() -> None:
    stages = Stages(0.0)
    stages.enter(Stage.LOADING, 1.0)
    stages.enter(Stage.COMPUTING, 3.0)
    stages.step = 12
    assert json.loads(json.dumps(pulse.beat(3.5, stages))) == {
        "step": 12,
        "stage": "computing",
        "seconds": 0.5,
        "stages": {"outside": [1, 1.0], "loading": [1, 2.0]},
    }
