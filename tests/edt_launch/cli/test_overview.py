from edt_launch.cli import model
from edt_launch.cli.overview import Seen, picture
from fake_service import CLUSTER, NOW, SHARES, TWO_JOBS

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
