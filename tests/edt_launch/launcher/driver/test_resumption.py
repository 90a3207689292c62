from edt_launch.core.history import events
from edt_launch.launcher.driver.resumption import Resumption
from edt_messages import messages


def test_the_pause_of_a_replaced_world_lasts_from_step_to_step() -> None:
    resumption = Resumption()
    resumption.open(1, None, 2)
    assert [type(event) for event in resumption.observe(5.0, messages.Progress(7, None, 2))] == [
        events.Progress
    ]
    resumption.open(2, 2, 3)
    resumed, progress = resumption.observe(6.5, messages.Progress(8, 1, 3))
    assert resumed == events.Resumed(2, 2, 3, 1.5)
    assert progress == events.Progress(8, 1, 3)
    assert resumption.step == 8
