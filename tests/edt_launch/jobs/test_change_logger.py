"""What goes wrong again and again is told once."""

import errno

import pytest

from edt_launch.jobs.change_logger import Troubles, is_passing


def test_what_is_wrong_is_told_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    troubles = Troubles()
    for text in ("no room", "no room", "no room\n[SQL: ...]", "no such file"):
        troubles.tell("j1", OSError(text))
    troubles.tell("j2", OSError("no room"))
    for _ in range(2):
        troubles.over("j1")
    assert caplog.messages == [
        "j1, it is tried again: no room",
        "j1, it is tried again: no such file",
        "j2, it is tried again: no room",
        "j1: it is well again",
    ]


@pytest.mark.parametrize(
    "error, expected",
    [
        (OSError(errno.EMFILE, "too many"), True),
        (BlockingIOError(errno.EAGAIN, "no process"), True),
        (FileNotFoundError(errno.ENOENT, "no file"), False),
        (ValueError(errno.EMFILE), False),
    ],
)
def test_what_passes(error: Exception, expected: bool) -> None:
    assert is_passing(error) is expected
