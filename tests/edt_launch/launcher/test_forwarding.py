"""Passing on what workers print."""

import io
import os
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest

from edt_launch.launcher import forwarding
from edt_launch.launcher.forwarding import Forwarder, in_thread
from edt_launch.launcher.supervise import CHUNK
from edt_launch.view.output import MAX_LINE


class Into(io.StringIO):
    """Remembers how long the longest text was that was written at once."""

    longest = 0

    def write(self, text):
        self.longest = max(self.longest, len(text))
        return super().write(text)


def pipe(data):
    """What Horovod reads from, and the other end."""
    reading, writing = Pipe(duplex=False)
    os.write(writing.fileno(), data)
    return reading, writing


def file(path, data):
    """A source that holds more than a pipe."""
    path.write_bytes(data)
    return Connection(os.open(path, os.O_RDONLY), writable=False)


def passed_on(source, forwarder, into=None):
    into = io.StringIO(newline="") if into is None else into
    forwarder(source, into, "stdout", 7, False, threading.Event())
    return into.getvalue()


def forward(data, forwarder):
    source, writing = pipe(data)
    writing.close()
    return passed_on(source, forwarder)


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"", ""),
        (b"one\ntwo", "[7]<stdout>:one\n[7]<stdout>:two"),
        (b"10 %\r20 %\r\n", "[7]<stdout>:10 %\r[7]<stdout>:20 %\r[7]<stdout>:\n"),
        ("\N{SNOWMAN}\n".encode(), "[7]<stdout>:\N{SNOWMAN}\n"),
        (b"\xff\n\xe2", "[7]<stdout>:\\xff\n[7]<stdout>:\\xe2"),
    ],
)
def test_every_line_says_whose_it_is(data, expected):
    assert forward(data, Forwarder()) == expected


def test_a_copy_has_every_byte(tmp_path):
    path = tmp_path / "7.stdout"
    forwarder = Forwarder(lambda worker, stream: tmp_path / f"{worker}.{stream}")
    forward(b"10 %\r\xff\nend", forwarder)
    forward(b"again", forwarder)
    assert path.read_bytes() == b"10 %\r\xff\nendagain"


def test_a_copy_that_cannot_be_written_does_no_harm(tmp_path, capsys):
    forwarder = Forwarder(lambda worker, stream: tmp_path / "missing" / stream)
    assert forward(b"one\n", forwarder) == "[7]<stdout>:one\n"
    assert "cannot be written" in capsys.readouterr().err


def test_a_line_without_an_end_is_passed_on_as_it_comes(tmp_path):
    into = Into(newline="")
    lines = passed_on(file(tmp_path / "source", b"y" * 10 * CHUNK + b"END"), Forwarder(), into).split("\n")
    assert "".join(line.removeprefix("[7]<stdout>:") for line in lines) == "y" * 10 * CHUNK + "END"
    assert all(line.startswith("[7]<stdout>:") for line in lines)
    assert into.longest <= CHUNK + MAX_LINE


def test_a_line_that_is_just_short_enough_is_whole(tmp_path):
    source = file(tmp_path / "source", b"y" * MAX_LINE + b"\nz\n")
    assert passed_on(source, Forwarder()) == f"[7]<stdout>:{'y' * MAX_LINE}\n[7]<stdout>:z\n"


def test_who_keeps_the_pipe_of_a_worker_that_has_gone_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(forwarding, "LEFTOVER_GRACE", 0.0)
    source, writing = pipe(b"last words")
    into = io.StringIO(newline="")
    with writing:
        in_thread(Forwarder(), (source, into, "stdout", 7, False)).join()
    assert into.getvalue() == "[7]<stdout>:last words"
    assert source.closed
