import pytest

from edt_launch.cli import model
from edt_launch.cli.overview import Seen, picture
from edt_launch.cli.screen import columns
from fake_service import CLUSTER, NOW, SHARES, TWO_JOBS, job

HOSTS = tuple(map(model.host, CLUSTER["hosts"]))  # type: ignore[call-overload]
NODES = tuple(map(model.share, SHARES["shares"]))
JOBS = tuple(map(model.job, TWO_JOBS))


def seen(**changes: object) -> Seen:
    fields = {"url": "http://127.0.0.1:8766", "now": NOW, "hosts": HOSTS, "jobs": JOBS, "shares": NODES}
    return Seen(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_picture_has_devices_owners_and_jobs() -> None:
    lines = picture(seen(), 80, False)
    assert lines[0].startswith("edt  http://127.0.0.1:8766")
    assert "1 running, 1 waiting" in lines[0]
    assert "2 of 4 devices used" in lines[2]
    assert lines[3].split() == ["node1", "A", "A", "·", "·"]
    owners = [line.split("  ")[0] or line.strip().split(" ")[0] for line in lines[5:8]]
    assert owners == ["bob", "vision", "ada"]
    assert lines[6].endswith("2, share 2, weight 2")
    assert lines[10].startswith("A jaaaaaaaa  train")
    assert lines[11].startswith("  jbbbbbbbb  eval")


@pytest.mark.parametrize("limit", [80, 100, 200])
def test_it_fits(limit: int) -> None:
    host = model.Host("a-host-with-a-long-name.example", "draining", HOSTS[0].devices * 40)
    crowd = tuple(model.job(job(f"j{i:08}", name="x" * 50, owner="o" * 30)) for i in range(30))
    lines = picture(seen(hosts=(host,) * 12, jobs=crowd), limit, False)
    assert max(map(columns, lines)) <= limit
    assert any("and 4 more hosts" in line for line in lines)


def test_a_host_that_is_down_shows_lost_devices() -> None:
    host = model.Host("node2", "down", (model.Device("0"), model.Device("1")))
    assert picture(seen(hosts=(host,)), 80, False)[3].split() == ["node2", "x", "x", "down"]
