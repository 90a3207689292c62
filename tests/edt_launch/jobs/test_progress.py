"""What a job's events say of it."""

import json

import pytest

from edt_launch.jobs.progress import Course, Life, Pace

BEGUN = {"event": "begun", "time": 1.0, "pid": 7, "started": 0.5, "min_np": 1, "max_np": 4}


def after(*events: dict[str, object]) -> Course:
    course = Course()
    for event in events:
        course = course.observe({"time": 0.0, **event})
    return course


def started(worker: int, device: str) -> dict[str, object]:
    return {"event": "started", "worker": worker, "host": "h", "slot": 0, "device": device, "rank": 0}


def progress(time: float, step: int, size: int, **values: object) -> dict[str, object]:
    return {"event": "progress", "time": time, "step": step, "epoch": 0, "size": size, "values": values}


def world(size: int) -> dict[str, object]:
    return {"event": "world", "size": size, "generation": 1}


def test_who_uses_which_device() -> None:
    course = after(BEGUN, started(0, "a"), started(1, "b"), {"event": "released", "worker": 0})
    assert course.life == Life(7, 0.5, 1, 4, workers=((1, "h", "b"),))
    assert course.life.devices == {("h", "b")}


def test_a_lost_worker_keeps_its_device_until_it_is_known_to_be_gone() -> None:
    lost = (started(0, "a"), started(1, "b"), {"event": "lost", "worker": 0}, {"event": "launched"})
    course = after(BEGUN, *lost)
    assert course.life is not None
    assert course.life.devices == {("h", "a")}
    assert Course.from_json(json.loads(json.dumps(course.as_json()))) == course
    course = after(BEGUN, *lost, {"event": "released", "worker": 0})
    assert course.life is not None
    assert (course.life.devices, course.life.lost) == (frozenset(), ())


def test_which_generation_is_followed_only_grows() -> None:
    course = after(BEGUN, *({"event": "following", "generation": number} for number in (3, 5, 4)))
    assert course.life is not None
    assert course.life.following == 5


def test_a_launcher_that_starts_anew_has_ended_whatever_ran() -> None:
    course = after(BEGUN, started(0, "a"), world(1), {"event": "launched"})
    assert course.life is not None
    assert (course.life.workers, course.life.size) == ((), 0)


def test_what_its_program_can_use_is_what_it_has_said_last() -> None:
    course = after(BEGUN, *({"event": "usable", "max_workers": number} for number in (3, 2, 0, -1, "x")))
    assert course.life is not None
    assert course.life.usable == 2
    again = course.observe({**BEGUN, "pid": 8})
    assert again.life is not None
    assert again.life.usable is None


def test_a_driver_is_there_whatever_trains() -> None:
    course = after(BEGUN, {"event": "driver", "pid": 9, "id": "driver-1"}, {"event": "launched"})
    assert course.life == Life(7, 0.5, 1, 4, is_driven=True)


def test_the_end_and_the_next_beginning() -> None:
    end = {"event": "ended", "exit_code": 5, "message": "left"}
    course = after(BEGUN, started(0, "a"), end)
    assert course.life is not None
    assert (course.life.exit_code, course.life.message, course.life.workers) == (5, "left", ())
    assert course.observe({**BEGUN, "pid": 8}).life == Life(8, 0.5, 1, 4)


def test_paces_are_measured_between_reports_of_one_world() -> None:
    course = after(
        BEGUN,
        world(2),
        progress(10, 5, 2, loss=0.5, total_steps=100),
        progress(20, 25, 2),
        world(4),
        progress(25, 30, 4),
        progress(26, 34, 4),
        progress(27, 33, 4),  # done again
    )
    assert course.paces == (Pace(2, 20, 10), Pace(4, 4, 1))
    assert (course.step, course.total_steps, course.loss, course.resizes) == (33, 100, 0.5, 1)


def test_older_paces_fade() -> None:
    course = after(BEGUN, world(1), progress(0, 1, 1), progress(1000, 1001, 1), progress(1100, 2001, 1))
    (pace,) = course.paces
    assert pace.steps / pace.seconds == pytest.approx(1500 / 600)


@pytest.mark.parametrize(
    "values", [{"loss": float("nan")}, {"loss": "low"}, {"total_steps": -1}, {"loss": float("inf")}]
)
def test_reports_that_make_no_sense_are_left_out(values: dict[str, object]) -> None:
    course = after(BEGUN, progress(1, 1, 1, **values))
    assert (course.step, course.total_steps, course.loss) == (1, None, None)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"event": "started"},
        {"event": "world", "size": "2"},
        {"event": "released", "worker": None},
        {**BEGUN, "min_np": "one"},
        {**BEGUN, "pid": 2**31},
        {"event": "world", "size": -1},
        {"event": "following", "generation": 10**18},
        {"event": "ended", "exit_code": 10**10},
        {"event": "resumed", "pause": float("nan")},
        progress(1, 10**23, 1),
        progress(10**400, 1, 1),
        progress(float("inf"), 1, 1),
        started(0, "a\0"),
        started(0, "a") | {"host": "h\nother:4"},
    ],
)
def test_events_that_are_not_as_expected_change_nothing(event: dict[str, object]) -> None:
    course = after(BEGUN)
    assert course.observe(event) == course


def test_a_course_can_be_written_down() -> None:
    course = after(
        BEGUN, started(0, "a"), world(2), progress(1, 1, 2), progress(2, 2, 2), {"event": "restarting"}
    )
    course = course.observe({"event": "resumed", "pause": 0.5})
    assert Course.from_json(json.loads(json.dumps(course.as_json()))) == course
    assert Course.from_json(json.loads(json.dumps(Course().as_json()))) == Course()


def test_what_no_job_of_its_size_can_have_changes_nothing() -> None:
    course = after(BEGUN, *(started(number, str(number)) for number in range(4)))
    assert course.after([world(3), progress(1, 1, 3)], most=2) == (course, 2)
    assert course.after([started(5, "e")], most=2) == (course, 1)  # old and new workers of two
    assert course.after([started(5, "e")], most=3)[0] != course


@pytest.mark.parametrize(
    "change",
    [
        {"step": 2**53},
        {"loss": float("inf")},
        {"resizes": 2**31},
        {"pauses": [1.0] * 11},
        {"paces": [{"size": 2**31, "steps": 1.0, "seconds": 1.0}]},
        {"life": {"pid": 2**31}},
        {"life": {"exit_code": -1}},
        {"life": {"workers": [[1, "h\nother:4", "a"]]}},
        {"life": {"workers": [[1, "h", "a b"]]}},
    ],
)
def test_a_course_that_no_events_can_lead_to_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Course.from_json(json.loads(json.dumps(Course().as_json() | change)))
