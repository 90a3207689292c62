"""What the training thread is doing."""

from edt_hvd.world.stages import LONGEST_NAP, Stage, Stages


def test_the_longest_time_of_each_stage_is_kept() -> None:
    found = Stages(10.0)
    for stage, now in (
        (Stage.LOADING, 11.0),
        (Stage.COMPUTING, 13.0),
        (Stage.LOADING, 14.0),
        (Stage.REDUCING, 14.5),
    ):
        found.awake(now - 0.25)
        found.enter(stage, now)
    assert found.lasting(15.0) == (Stage.REDUCING, 0.5)
    assert found.times[Stage.LOADING] == (2, 2.0)
    assert found.times[Stage.COMPUTING] == (1, 1.0)
    assert found.times[Stage.REDUCING] == (0, 0.0)


def test_the_wait_at_rendezvous_is_no_work() -> None:
    found = Stages(10.0)
    found.enter(Stage.FORMING, 12.0)
    found.enter(Stage.OUTSIDE, 12.5)
    found.awake(12.5)
    found.enter(Stage.FORMING, 14.5)
    assert found.times[Stage.OUTSIDE] == (0, 0.0)
    found.enter(Stage.OUTSIDE, 15.0)
    found.awake(15.0)
    found.enter(Stage.LOADING, 16.0)
    assert found.times[Stage.OUTSIDE] == (1, 1.0)


def test_the_time_in_which_the_process_was_frozen_counts_for_no_stage() -> None:
    found = Stages(10.0)
    found.enter(Stage.COMPUTING, 10.0)
    found.awake(11.0)
    found.awake(56.5)
    assert found.lasting(57.0) == (Stage.COMPUTING, 1.0 + LONGEST_NAP + 0.5)
    found.enter(Stage.LOADING, 57.0)
    assert found.times[Stage.COMPUTING] == (1, 1.0 + LONGEST_NAP + 0.5)


def test_a_stage_counts_from_its_last_heartbeat() -> None:
    found = Stages(0.0)
    found.enter(Stage.UPDATING, 0.0)
    for now in range(1, 101):
        found.awake(float(now))
        if now in (30, 80):
            found.heartbeat(float(now))
    assert found.lasting(100.0) == (Stage.UPDATING, 20.0)
    assert found.idle(100.0) == 20.0
    found.enter(Stage.LOADING, 100.0)
    assert found.times[Stage.UPDATING] == (1, 50.0)
    found.enter(Stage.UPDATING, 101.0)
    found.enter(Stage.LOADING, 102.0)
    assert found.times[Stage.UPDATING] == (2, 50.0)
    assert found.times[Stage.LOADING] == (1, 1.0)
