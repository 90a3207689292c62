"""What listings say."""

from edt_launch.cli.model import host
from edt_launch.cli.terminal.tables import hosts_table


def test_a_host_that_is_down_is_listed_with_since_when_and_why() -> None:
    down = {"name": "h2", "state": "down", "changed": 50.0, "reason": "it cannot be reached: x"}
    up = {"name": "h1", "state": "up", "changed": 50.0, "reason": ""}
    listed = [host({"devices": [], "source": "host file", **one}) for one in (up, down)]
    text = "\n".join(hosts_table(listed, {}, 100.0, 200, False))
    assert "it cannot be reached: x" in text
    assert text.count("since ") == 1
