"""Failures that repeat are logged once."""

import pytest

from edt_launch.service.jobs.loop.change_logger import ChangeLogger


def test_what_is_wrong_is_told_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    problems = ChangeLogger()
    for text in ("no room", "no room", "no room\n[SQL: ...]", "no such file"):
        problems.failed("j1", OSError(text))
    problems.failed("j2", OSError("no room"))
    for _ in range(2):
        problems.recovered("j1")
    assert caplog.messages == [
        "j1 failed and is tried again: no room",
        "j1 failed and is tried again: no such file",
        "j2 failed and is tried again: no room",
        "j1 works again",
    ]
