"""Requests to launchers that answer, that do not, and that are not there."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_launch.core.control_protocol import MAX_LINE, Accepted, Pause, Stop, write
from edt_launch.core.system.unix_address import unix_address
from edt_launch.launcher.runs.control_socket import ControlSocket
from edt_launch.service.jobs.loop.launching.control_client import TIMEOUT, ControlAnswer, Exchange
from no_files import KINDS, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / ("a long folder's name " * 10)
    folder.mkdir()
    return folder / "control"


@pytest.fixture
def stuck(path: Path) -> Iterator[socket.socket]:
    """A launcher that listens, and does not get round to accepting anybody: it is stopped, say."""
    with socket.socket(socket.AF_UNIX) as listener:
        with unix_address(path) as address:
            listener.bind(address)
        listener.listen(0)
        yield listener


def test_an_answer_comes_at_a_later_look(path: Path) -> None:
    with ControlSocket(path, print) as control:
        first, again = Exchange(path, Stop("a")), Exchange(path, Stop("a"))
        assert first.look() is None
        assert control.requests() == [Stop("a")]
        assert (first.look(), again.look(), first.look()) == (ControlAnswer.ACCEPTED,) * 3


def test_without_a_launcher_that_is_known_at_once(path: Path) -> None:
    assert Exchange(path, Pause("a")).answer is ControlAnswer.NO_LAUNCHER
    with socket.socket(socket.AF_UNIX) as killed, unix_address(path) as address:
        killed.bind(address)
    assert Exchange(path, Pause("a")).answer is ControlAnswer.NO_LAUNCHER
    path.unlink()
    path.parent.rmdir()
    assert Exchange(path, Pause("a")).answer is ControlAnswer.NO_LAUNCHER


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_socket_is_no_launcher(path: Path, kind: str) -> None:
    put(kind, path)
    assert Exchange(path, Pause("a")).answer is ControlAnswer.NO_LAUNCHER


def test_one_that_never_answers_is_waited_for_by_nobody(stuck: socket.socket, path: Path) -> None:
    now = 0.0
    exchanges = [Exchange(path, Pause(str(number)), lambda: now) for number in range(3)]
    assert exchanges[0].look() is None
    assert exchanges[-1].look() is ControlAnswer.NO_ANSWER  # there is no more room in its queue
    now = TIMEOUT
    assert {exchange.look() for exchange in exchanges} == {ControlAnswer.NO_ANSWER}


@pytest.mark.parametrize(
    "said", [b"\n", b"\xff\n", b"x" * (MAX_LINE + 1), write(Accepted("another")), b'{"half": ']
)
def test_nonsense_is_no_answer(stuck: socket.socket, path: Path, said: bytes) -> None:
    exchange = Exchange(path, Pause("a"))
    with stuck.accept()[0] as accepted:
        accepted.sendall(said)
        accepted.shutdown(socket.SHUT_WR)
        assert exchange.look() is ControlAnswer.NO_ANSWER


def test_it_leaves_no_file_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    Exchange(path, Pause("a"))
    with ControlSocket(path, print):
        Exchange(path, Pause("a")).close()
    assert len(os.listdir("/proc/self/fd")) == before
