"""The connection of a worker of `edt torchrun`, against a socket."""

import json
import os
import signal
import socket
import threading

import pytest

from edt_hvd.torchrun.launcher_link import LauncherLink
from edt_messages import messages
from edt_messages.messages import decode, encode


def test_what_the_launcher_says_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = threading.Event()
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.set() if number == signal.SIGTERM else None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = LauncherLink(f"127.0.0.1:{server.getsockname()[1]}", "secret", 3)
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as lines:
            assert decode(lines.readline()) == messages.Hello("secret", 3, os.getpid())
            asking = threading.Thread(target=link.ask, args=(messages.AtRendezvous(0),))
            asking.start()
            assert decode(lines.readline()) == messages.AtRendezvous(0)
            later = {"kind": "of_a_later_version", "type": "of_a_later_version"}
            connection.sendall(json.dumps(later).encode() + b"\n" + encode(messages.Stop(2)))
            connection.sendall(encode(messages.Admit(2, 50)))
            asking.join()
            assert (link.is_due, link.step) == (False, 50)
            connection.sendall(encode(messages.End()))
            assert killed.wait(60)
            link.close()
