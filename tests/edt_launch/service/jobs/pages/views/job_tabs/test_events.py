from edt_launch.core.history.event_codec import read_line
from edt_launch.service.jobs.pages.views.job_tabs import events


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
