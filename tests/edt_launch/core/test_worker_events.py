"""What workers report, as they say it themselves."""

import math
from types import SimpleNamespace

import pytest

from edt_hvd import reporting
from edt_hvd.reporting import ResizeReport
from edt_launch.core.events import Progress, Resumed, event_of
from edt_messages.messages import Message


@pytest.mark.parametrize(
    "value, number",
    [
        (2, 2),
        (0.5, 0.5),
        (-1.0, -1.0),
        ("2", None),
        (True, None),
        (math.nan, None),
        (math.inf, None),
        (10**301, None),
    ],
)
def test_only_numbers_are_numbers(value: float | str, number: float | None) -> None:
    assert Progress(1, 0, 1, {"loss": value}).number("loss") == number
    assert Progress(1, 0, 1).number("loss") is None


def test_a_report_of_a_resize_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting.hvd, "rank", lambda: 0)
    sent: list[Message] = []
    report = ResizeReport(3, 2, 4, stopped_at=10.0)
    report.mark("drain", 10.5)
    report.send_to(SimpleNamespace(send=sent.append), 12.0)
    assert [event_of(1, message) for message in sent] == [Resumed(3, 2, 4, 2.0, {"drain": 0.5})]
