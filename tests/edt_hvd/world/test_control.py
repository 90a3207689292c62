"""The conversation with the launcher, with a socket in its place."""

import socket
from collections.abc import Iterator

import pytest

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world import control
from edt_hvd.world.control import Launcher
from edt_messages import messages
from edt_messages.messages import encode
from interpreters import Interpreters
from started import deaf


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Launcher, socket.socket]]:
    """A worker's end, which outlives the launcher, and the launcher's."""
    monkeypatch.setattr(Launcher, "_end_orphan", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        launcher = Launcher(f"127.0.0.1:{server.getsockname()[1]}", "token", 7)
        launcher.connect()
        theirs, _ = server.accept()
        with theirs:
            yield launcher, theirs
        launcher.close()


def test_a_defect_while_a_message_is_handled_is_shown_and_ends_the_wait(
    conversation: tuple[Launcher, socket.socket], capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(generation: int) -> None:
        raise AttributeError(f"no such function, in generation {generation}")

    launcher, theirs = conversation
    launcher.on_cut = fail
    theirs.sendall(encode(messages.Cut(3)))
    with pytest.raises(CoordinatorLostError, match="AttributeError: no such function, in generation 3"):
        launcher.wait_for_assignment(progress=0)
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize("last", [b'{"type": "assi', b'{"type": "stop", "generation": 3}\n{"'])
def test_a_worker_does_not_wait_for_a_launcher_that_has_died(
    conversation: tuple[Launcher, socket.socket], last: bytes
) -> None:
    launcher, theirs = conversation
    theirs.sendall(last)
    theirs.close()
    with pytest.raises(CoordinatorLostError):
        launcher.wait_for_assignment(progress=0)
    assert launcher.is_lost


def test_a_launcher_that_does_not_accept_the_connection_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control, "CONNECT_TIMEOUT", 0.1)
    with deaf() as address, pytest.raises(CoordinatorLostError):
        Launcher(address, "token", 0).connect()


STUBBORN = """
import signal
from edt_hvd.world import control
control.ORPHAN_GRACE = 0.1
signal.signal(signal.SIGTERM, lambda *_: None)
control.Launcher("127.0.0.1:1", "token", 0)._end_orphan()
while True:
    signal.pause()
"""


def test_a_worker_without_a_launcher_ends_though_it_takes_no_sigterm(interpreters: Interpreters) -> None:
    assert interpreters.run(STUBBORN).returncode == 1
