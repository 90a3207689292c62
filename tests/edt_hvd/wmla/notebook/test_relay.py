import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest

from edt_hvd.wmla import launching
from edt_hvd.wmla.notebook.relay import VARIABLE, Kernel, relay
from edt_messages import wmla


@pytest.fixture
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = Path("/tmp", f"edt-test-{os.getpid()}")
    yield place
    place.unlink(missing_ok=True)


class Started:
    """A relay in a thread, with edt-launch's end of its socket."""

    def __init__(self, address: Path) -> None:
        self.kernel = Kernel(address)
        self.ours, self.theirs = socket.socketpair()
        self.pool = ThreadPoolExecutor(1)
        environ = {VARIABLE: str(address), launching.VARIABLE: str(self.theirs.fileno())}
        self.end = self.pool.submit(relay, environ)
        self.launcher = self.kernel.accept(lambda: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kernel.close()
        self.launcher.close()
        self.ours.close()
        self.theirs.close()
        self.pool.shutdown()


def test_the_kernel_talks_to_the_launcher_until_it_is_done(address: Path) -> None:
    with Started(address) as started:
        started.launcher.train(1, ["x"], 2)
        assert wmla.decode(started.ours.recv(1000).rstrip(b"\n")) == wmla.Train(1, ("x",), 2)
        started.ours.sendall(wmla.encode(wmla.Ended(1, 0, "")))
        assert started.launcher.receive(1) == wmla.Ended(1, 0, "")
        assert not started.end.done()
        started.kernel.done()
        assert started.end.result() is None


def test_a_kernel_that_is_gone_ends_it_without_success(address: Path) -> None:
    with Started(address) as started:
        started.kernel.close()
        with pytest.raises(SystemExit, match="the notebook has interrupted the training, or its kernel has"):
            started.end.result()
