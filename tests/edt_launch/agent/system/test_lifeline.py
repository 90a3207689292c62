"""A child that ends with its parent."""

import socket
import sys

import pytest

from edt_launch.agent.system.lifeline import kill_group_when_peer_closes
from started import started

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel does it")

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def start(descriptor):
    return started(
        SLEEPS,
        pass_fds=[descriptor],
        start_new_session=True,
        preexec_fn=lambda: kill_group_when_peer_closes(descriptor),
    )


@pytest.mark.parametrize("is_closed_before", [False, True])
def test_it_is_killed_when_the_other_end_closes(is_closed_before):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if is_closed_before:
            ours.close()
        with start(theirs.fileno()) as child:
            theirs.close()
            assert is_closed_before or child.poll() is None
            ours.close()
            assert child.wait() != 0
