import os
import socket

import pytest

from edt_hvd.wmla import launching
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.launching import Launcher
from edt_messages.wmla import Ended, ExecutorMessage, Limit, encode


def test_the_end_of_a_training_that_was_cancelled_is_not_that_of_the_next() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        launcher = Launcher(theirs)
        launcher.cancel(1)
        assert ours.recv(100) == b'{"type": "cancel", "number": 1}\n'
        ours.sendall(encode(Ended(1, 137, "cancelled")))
        assert launcher.receive(2) == []
        last = [ExecutorMessage(2, "a result"), Ended(2, 0, "")]
        ours.sendall(b"".join(map(encode, [Ended(1, 137, "again"), *last])))
        assert launcher.receive(2) == last


@pytest.mark.parametrize(
    "line, reason",
    [
        (b"no\n", "b'no' is no message"),
        (encode(Limit(1)), r"Limit\(max_workers=1\), expected an `ExecutorMessage` or an `Ended`"),
    ],
)
def test_unknown_messages_are_errors(line: bytes, reason: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(line)
        with pytest.raises(WmlaError, match=reason):
            Launcher(theirs).receive(1)


def test_a_process_that_the_script_has_started_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "driver_process", os.getppid())
    with pytest.raises(WmlaError, match=r"train\(\) in a process that the script has started; .* unset EDT"):
        launching.is_driver({"EDT_WMLA_LAUNCHER": "3"})


@pytest.mark.parametrize("value", ["x", "99999"])
def test_a_variable_that_names_no_socket(value: str) -> None:
    with pytest.raises(WmlaError, match=rf"EDT_WMLA_LAUNCHER='{value}' names no open socket"):
        Launcher.of({"EDT_WMLA_LAUNCHER": value})
