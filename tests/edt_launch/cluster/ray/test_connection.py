import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edt_launch.cluster.ray.connection import LOST, Connection, Options
from edt_launch.cluster.ray.messages import Ended
from edt_launch.core.errors import SourceError

FAKE = """
import os, sys
from edt_launch.cluster.ray.messages import *
def tell(message): os.write(1, write(message))
for line in sys.stdin.buffer:
    match read(line):
        case Want(slots): tell(Picture("GPU", (), str(slots)))
        case Open(number, "dies"): sys.exit()
        case Open(number, host, words, text): tell(Ended(number, 3, f"{host} {words} {text}"))
"""
"""A bridge whose pictures have what is wanted as their reason."""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    script = tmp_path / "bridge.py"
    script.write_text(FAKE)
    with closing(Connection(Options("auto", "p"), (sys.executable, str(script)), 0.0)) as made:
        yield made


def reason(connection: Connection, expected: str) -> str:
    """The reason of the picture; waits for one that is expected."""
    with connection._changed:
        connection._changed.wait_for(
            lambda: connection._picture is not None and connection._picture.reason == expected, 60
        )
    return connection.picture().reason


def test_a_bridge_that_ends_is_started_again_and_hears_what_is_wanted(connection: Connection) -> None:
    connection.want(2)
    assert reason(connection, "2") == "2"
    assert connection.run_agent("dies", (), "") == Ended(0, None, f"{LOST}; it is tried again")
    assert reason(connection, "2") == "2"


def test_a_cluster_that_cannot_be_reached_is_reported(tmp_path: Path) -> None:
    script = tmp_path / "bridge.py"
    script.write_text(
        "import os\nfrom edt_launch.cluster.ray.messages import *\nos.write(1, write(Failed('no cluster')))"
    )
    with closing(Connection(Options("auto", "p"), (sys.executable, str(script)))) as connection:
        with pytest.raises(SourceError, match="no cluster"):
            connection.picture()
        assert connection.run_agent("n1", (), "").text == "no cluster"
