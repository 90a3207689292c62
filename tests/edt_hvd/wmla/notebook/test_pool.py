import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_hvd.wmla.notebook import pool
from edt_hvd.wmla.notebook.pool import AwayError, Requests, lines_until, stop
from edt_messages import wmla

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    kernel, ours = socket.socketpair()
    with kernel, ours:
        yield kernel, ours


TRAIN, LIMIT = wmla.Train(1, ("x",), 2), wmla.Limit(1)


def test_messages_are_taken_one_by_one_until_the_kernel_is_gone(pair: Pair) -> None:
    kernel, ours = pair
    requests = Requests(ours)
    sent = wmla.encode(TRAIN) + wmla.encode(LIMIT) + wmla.encode(TRAIN)
    kernel.sendall(sent[:-3])
    assert [requests.next(), requests.has_one, requests.next(), requests.has_one] == [
        *(TRAIN, True),
        *(LIMIT, False),
    ]
    kernel.sendall(sent[-3:])
    assert requests.next() == TRAIN
    kernel.close()
    assert requests.next() is None
    assert not requests.send(LIMIT)


def test_output_comes_in_lines_and_the_kernel_is_noticed_in_between(pair: Pair) -> None:
    kernel, ours = pair
    requests = Requests(ours)
    output, end = os.pipe()
    os.write(end, b"one\ntw")
    lines = lines_until(output, requests)
    assert next(lines) == b"one"
    kernel.sendall(wmla.encode(LIMIT) * 2)
    for _ in range(2):  # the second has been received with the first
        assert next(lines) is None
        assert requests.next() == LIMIT
    os.write(end, b"o\n")
    assert next(lines) == b"two"
    os.close(end)
    assert list(lines) == []
    os.close(output)


EDT = """import pathlib, sys
codes = pathlib.Path(sys.argv[1])
first, *rest = codes.read_text().split()
codes.write_text(" ".join(rest))
sys.exit(int(first))
"""
"""Plays `edt`: ends with one code after the other of a file."""


@pytest.fixture
def codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pool, "EDT", (sys.executable, "-c", EDT, str(tmp_path / "codes")))
    return tmp_path / "codes"


def test_a_service_that_is_away_is_told_to_stop_a_job_until_it_is_back_or_away_for_too_long(
    codes: Path,
) -> None:
    pauses: list[float] = []
    codes.write_text("3 3 0")
    stop("jaaaaaaaa", clock=lambda: 0.0, pause=pauses.append)
    assert pauses == [pool.RETRY] * 2
    times = iter((0.0, pool.PERSISTENCE - 1, pool.PERSISTENCE))
    codes.write_text("3 3")
    with pytest.raises(AwayError, match="edt stop"):
        stop("jaaaaaaaa", clock=lambda: next(times), pause=lambda _: None)
