import json
import os
import socket
from pathlib import Path

import pytest

from edt_hvd.wmla.errors import TrainingFailedError, WmlaError
from edt_hvd.wmla.launching import Ended, Launcher, executor_program


def test_what_is_said() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        launcher = Launcher.of({"EDT_WMLA_LAUNCHER": str(theirs.fileno())})
        launcher.train(1, ["python"], 16)
        launcher.limit(3)
        said = [json.loads(line) for line in ours.recv(4096).splitlines()]
        launcher.close()
    assert said == [
        {"do": "train", "number": 1, "program": ["python"], "max_workers": 16},
        {"do": "limit", "max_workers": 3},
    ]


def test_the_answer_may_come_in_parts() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        launcher = Launcher(theirs)
        ours.sendall(b'{"ended": {"exit_code": 1, ')
        assert launcher.receive() is None
        ours.sendall(b'"message": "killed"}}\n')
        ended = launcher.receive()
    assert ended == Ended(1, "killed")
    with pytest.raises(TrainingFailedError, match="exit code 1: killed"):
        ended.check()
    Ended(0, "").check()


def test_a_launcher_that_is_gone() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    launcher = Launcher(theirs)
    with theirs:
        for use in (launcher.receive, lambda: launcher.limit(2)):
            with pytest.raises(TrainingFailedError, match="edt-launch is gone"):
                use()


@pytest.mark.parametrize("line", [b"{}\n", b"no\n", b'{"ended": {"exit_code": 1}}\n'])
def test_unknown_messages_are_errors(line: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(line)
        with pytest.raises(WmlaError, match="expected an 'ended' message"):
            Launcher(theirs).receive()


@pytest.mark.parametrize("value", ["", "x", "99999"])
def test_a_variable_that_names_no_socket(value: str) -> None:
    with pytest.raises(WmlaError, match=rf"EDT_WMLA_LAUNCHER='{value}' names no open socket"):
        Launcher.of({"EDT_WMLA_LAUNCHER": value})


def test_executors_run_under_the_same_interpreter() -> None:
    program = executor_program("/a b/main.py", Path("/a b/training-1"))
    assert program[1:] == ["-m", "edt_hvd.wmla.executor", "/a b/main.py", "/a b/training-1"]
    assert os.access(program[0], os.X_OK)
