from dataclasses import replace
from typing import Any

from edt_launch.service.cluster import answers
from edt_launch.service.cluster.pages.views.pool import Mark, Tile, pool_view
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.jobs.forecast.upcoming import Upcoming
from edt_launch.service.jobs.records import HolderRecord
from edt_launch.service.jobs.states import State

NOTHING: dict[str, Any] = {"rows": [], "hosts": [], "jobs": [], "bars": [], "owners": [], "changes": []}
NONE = Upcoming([], {}, [], {})


def job(number: int, **changes: Any) -> HolderRecord:
    held = HolderRecord(f"jaaaaaaa{'abc'[number]}", "ann", "", number, State.QUEUED, 5.0, None, (), ())
    return replace(held, **changes)


def test_devices_show_whose_they_are() -> None:
    hosts = [
        HostRecord("n1", ("0", "1", "2")),
        HostRecord("n2", ("0",), is_up=False, lost="it cannot be reached: x", changed=70.0),
        HostRecord("n3", ("0",), is_draining=True, reason="mended"),
    ]
    runs = job(1, state=State.RUNNING, name="digits", held=(("n1", ("0",)),), leaving=(("n1", ("1",)),))
    waits = job(2, waiting_since=40.0)
    view = pool_view(answers.cluster(hosts, [runs, waits]), [runs, waits], NOTHING, NONE, 2.3, "1 h", 100.0)
    assert [[cell.state for cell in cells] for _, cells in view.boxes] == [
        ["used", "leaving", "free"],
        ["down"],
        ["draining"],
    ]
    used, leaving, _ = view.boxes[0][1]
    assert (used.job, used.mark, used.title) == (runs.id, Mark("A", 0), "0: digits of ann")
    assert leaving.title.endswith("its worker is leaving")
    assert [host["reason"] for host, _ in view.boxes] == ["", "it cannot be reached: x", "mended"]
    assert view.tiles == [
        Tile("GPUs in use", "2 of 4"),
        Tile("Running", "1"),
        Tile("Queued", "1"),
        Tile("Longest wait", "1m"),
        Tile("GPU-hours today", "2.3"),
    ]


def test_a_suspended_device_says_until_when() -> None:
    runs = job(1, state=State.RUNNING, name="digits", held=(("n1", ("0", "1")),))
    retried = {("n1", "0"): 130.0, ("n1", "1"): 90.0, ("n2", "0"): 130.0}
    cluster = answers.cluster([HostRecord("n1", ("0", "1")), HostRecord("n2", ("0",))], [runs], retried)
    first, second, third = [
        cell
        for _, cells in pool_view(cluster, [runs], NOTHING, NONE, 0, "1 h", 100.0).boxes
        for cell in cells
    ]
    assert (first.state, first.retried) == ("suspended", 130.0)
    assert "suspended after a failure until 1970-01-01 00:02:10 UTC" in first.title
    assert (second.state, second.retried, third.state) == ("used", None, "free")
