"""What the training thread is doing."""

from edt_hvd import stages
from edt_hvd.stages import Stage, Stages


def test_the_longest_time_of_each_stage_is_kept() -> None:
    found = Stages(10.0)
    found.enter(Stage.LOADING, 11.0)
    found.enter(Stage.COMPUTING, 13.0)
    found.enter(Stage.LOADING, 14.0)
    found.enter(Stage.REDUCING, 14.5)
    assert found.present == (Stage.REDUCING, 14.5)
    assert found.times[Stage.LOADING] == (2, 2.0)
    assert found.times[Stage.COMPUTING] == (1, 1.0)
    assert found.times[Stage.REDUCING] == (0, 0.0)


def test_the_stage_before_a_collective_goes_on_after_it() -> None:
    stages.enter(Stage.UPDATING)
    with stages.waiting_for_others():
        assert stages.current().present[0] is Stage.REDUCING
    assert stages.current().present[0] is Stage.UPDATING
    stages.enter(Stage.OUTSIDE)
