import contextlib
import logging
import os
import sys
from collections.abc import Iterator

import pytest
import structlog

from edt_launch.service.app.running import set_up_logs


@pytest.fixture
def _logs_as_before() -> Iterator[None]:
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configured)


@pytest.mark.usefixtures("_logs_as_before")
def test_nothing_that_a_service_logs_steers_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        set_up_logs()
        structlog.get_logger().warning("a logon has failed", user="\x1b]0;name\x07")
        logging.getLogger("jobs").warning("j1: %s", "\x1b]0;message\x07")
        try:
            raise ValueError("\x1b]0;error\x07")
        except ValueError as error:
            logging.getLogger("jobs").error("j1", exc_info=error)
        monkeypatch.undo()
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while block := os.read(ours, 2**16):
            shown += block
    os.close(ours)
    assert b"\x1b]0;" not in shown
    for text in (b"name", b"message", b"error"):
        assert "\ufffd]0;".encode() + text in shown
