import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from edt_hvd.wmla import launching
from edt_hvd.wmla.notebook.relay import VARIABLE, Kernel, relay
from edt_messages import wmla

PROGRAM = "from edt_hvd.wmla.notebook.relay import relay; relay()"


@pytest.fixture
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = Path("/tmp", f"edt-test-{os.getpid()}")
    yield place
    place.unlink(missing_ok=True)


class Started:
    """A relay, with edt-launch's end of its socket."""

    def __init__(self, address: Path) -> None:
        self.kernel = Kernel(address)
        self.ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                env=os.environ | {VARIABLE: str(address), launching.VARIABLE: str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stderr=subprocess.PIPE,
            )
        self.launcher = self.kernel.accept(lambda: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kernel.close()
        self.launcher.close()
        self.ours.close()
        with self.process:
            pass


def test_the_kernel_talks_to_the_launcher_until_it_is_done(address: Path) -> None:
    with Started(address) as started:
        started.launcher.train(1, ["x"], 2)
        assert wmla.decode(started.ours.recv(1000).rstrip(b"\n")) == wmla.Train(1, ("x",), 2)
        started.ours.sendall(wmla.encode(wmla.Ended(1, 0, "")))
        assert started.launcher.receive(1) == wmla.Ended(1, 0, "")
        assert started.process.poll() is None
        started.kernel.done()
        assert started.process.wait() == 0


def test_a_kernel_that_is_gone_ends_it_without_success(address: Path) -> None:
    with Started(address) as started:
        started.kernel.close()
        _, said = started.process.communicate()
        assert started.process.returncode == 1
        assert said.decode().strip() == "the notebook has interrupted the training, or its kernel has ended"


def test_what_cannot_start_is_noticed_while_it_is_waited_for(address: Path) -> None:
    class EndedError(Exception):
        pass

    def check() -> None:
        raise EndedError

    kernel = Kernel(address)
    with pytest.raises(EndedError):
        kernel.accept(check, interval=0)
    kernel.close()
    with pytest.raises(ConnectionRefusedError):
        relay({VARIABLE: str(address), launching.VARIABLE: "0"})
