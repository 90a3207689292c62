"""An agent's connection to its launcher."""

import contextlib
import os
import selectors

from edt_launch.agent import connection as connection_module
from edt_launch.agent.protocol import Swept


def test_at_its_end_an_agent_does_not_wait_for_a_launcher_that_reads_nothing(monkeypatch):
    monkeypatch.setattr(connection_module, "FLUSH_TIMEOUT", 0.0)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(2**16))
    with selectors.DefaultSelector() as selector:
        one = connection_module.LauncherConnection(selector, reading, writing, print, print)
        one.send(Swept(0))
        one.flush()
    os.close(writing)
    with open(reading, "rb") as sent:
        assert not sent.read().rstrip(bytes(1))
