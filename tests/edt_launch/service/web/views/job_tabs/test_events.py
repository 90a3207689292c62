from edt_launch.core.event_codec import read_line
from edt_launch.service.api import views
from edt_launch.service.web.views.job_tabs import events
from edt_launch.service.web.views.lives import lives
from records import record


def test_events_are_told_in_words_and_what_is_none_is_left_out() -> None:
    lines = [
        b'{"event": "world", "time": 1.0, "generation": 1, "size": 2}',
        b"nonsense",
        b'{"event": "progress", "time": 2.0}',
        b'{"event": "allocation_rejected", "time": 3.0, "reason": "half a line"}',
    ]
    found = [event for event in map(read_line, lines) if event is not None]
    assert [(event.time, event.text) for event in events.happened(found, 9)] == [
        (3.0, "allocation not followed: half a line"),
        (1.0, "2 workers training"),
    ]
    assert len(events.happened(found, 1)) == 1


def test_phases_follow_each_other_in_parts_of_the_longest_resize() -> None:
    pauses = [
        {
            "from": 1,
            "to": 2,
            "start": 1.0,
            "end": 2.0,
            "reason": "",
            "phases": {"drain": 1.0, "transfer": 3.0},
        },
        {"from": 2, "to": 4, "start": 5.0, "end": 5.5, "reason": "", "phases": {"detect": 2.0}},
        {"from": None, "to": 4, "start": 8.0, "end": 9.0, "reason": "started again", "phases": {}},
    ]
    latest, first = events.events(views.job(record()), pauses, lives([], None), []).resizes
    assert [(one.left, one.width, one.seconds) for one in first.phases] == [
        (0.0, 25.0, "1.00 s"),
        (25.0, 75.0, "3.00 s"),
    ]
    assert (latest.size, latest.pause, latest.phases[0].width) == ("2→4", "0.50 s", 50.0)
