import threading

import pytest
from sqlalchemy.exc import InterfaceError, OperationalError

from edt_launch.service.repeating import repeat


def test_while_the_database_is_away_it_is_tried_again() -> None:
    stop, calls = threading.Event(), []
    failures = [
        OperationalError("", {}, Exception("gone")),
        InterfaceError("", {}, Exception("closed")),
        None,
    ]

    def work() -> None:
        calls.append(failures[len(calls)])
        if len(calls) == len(failures):
            stop.set()
        if calls[-1] is not None:
            raise calls[-1]

    repeat(work, 0.0, stop)
    assert calls == failures


def test_a_mistake_ends_it() -> None:
    def work() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        repeat(work, 0.0, threading.Event())
