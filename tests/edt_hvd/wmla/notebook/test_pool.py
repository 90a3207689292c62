import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_hvd.wmla.notebook import pool
from edt_hvd.wmla.notebook.pool import AwayError, Job, RefusedError, Requests, lines_until, stop
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


EDT = """import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
word, *rest = sys.argv[2:]
with (folder / "asked").open("a") as asked:
    print(word, file=asked)
codes = json.loads((folder / "codes.json").read_text())
if word == "submit":
    print(json.dumps({"id": "jaaaaaaaa"}))
elif word == "show":
    print(json.dumps({"state": "failed", "failure": "as it was told to"}))
elif word == "logs":
    while not (folder / "ended").exists():
        time.sleep(0.01)
times = sum(line.strip() == word for line in (folder / "asked").open())
code = codes.get(word, [])[times - 1 : times] or [0]
if code[0]:
    print("edt:", word, "failed", file=sys.stderr)
sys.exit(code[0])
"""
"""Plays `edt`: writes down what it is asked for, and ends as `codes.json` says for each time; logs have no
end before there is a file `ended`."""


class Edt:
    """What the stand-in of `edt` does, and was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "edt.py").write_text(EDT)
        self.ends()

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, str(self.folder / "edt.py"), str(self.folder))

    def ends(self, **codes: list[int]) -> None:
        (self.folder / "codes.json").write_text(json.dumps(codes))

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().split()


@pytest.fixture
def edt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edt:
    edt = Edt(tmp_path)
    monkeypatch.setattr(pool, "EDT", edt.command)
    return edt


class Submitted(Job):
    """A job whose code needs no files."""

    def _submit(self) -> str:
        self._training.path.mkdir(parents=True)
        return "jaaaaaaaa"


@pytest.fixture
def job(edt: Edt, pair: Pair) -> Job:
    return Submitted(edt.folder, "notebook-1", TRAIN, Requests(pair[1]))


def test_a_resize_that_is_refused_does_not_end_the_training(
    edt: Edt, job: Job, pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    edt.ends(set=[1])
    pair[0].sendall(wmla.encode(LIMIT) + wmla.encode(wmla.Cancel(1)))
    assert job.run() == (0, "")
    assert [word for word in edt.asked if word != "logs"] == ["set", "stop"]
    assert "job jaaaaaaaa keeps its size: edt set: edt: set failed" in capsys.readouterr().err


def test_a_service_that_is_away_is_told_to_stop_a_job_when_it_is_back(edt: Edt) -> None:
    edt.ends(stop=[3, 3])
    pauses: list[float] = []
    stop("jaaaaaaaa", clock=lambda: 0.0, pause=pauses.append)
    assert (edt.asked, pauses) == (["stop"] * 3, [pool.RETRY] * 2)


def test_stopping_a_job_is_given_up_at_last_and_where_it_is_refused(edt: Edt) -> None:
    times = iter((0.0, pool.PERSISTENCE - 1, pool.PERSISTENCE))
    edt.ends(stop=[3, 3, 1])
    with pytest.raises(AwayError, match="edt stop: edt: stop failed"):
        stop("jaaaaaaaa", clock=lambda: next(times), pause=lambda _: None)
    with pytest.raises(RefusedError):
        stop("jaaaaaaaa", clock=lambda: 0.0, pause=lambda _: None)
    assert edt.asked == ["stop"] * 3
