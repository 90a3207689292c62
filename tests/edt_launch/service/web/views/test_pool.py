from dataclasses import replace
from typing import Any

from edt_launch.allocator.prediction import Start
from edt_launch.service.api import views
from edt_launch.service.database.records import HolderRecord, HostRecord
from edt_launch.service.states import State
from edt_launch.service.upcoming import Upcoming
from edt_launch.service.web.views.pool import MOST_ROWS, Mark, Tile, pool_view

NOTHING: dict[str, Any] = {"rows": [], "hosts": [], "jobs": [], "bars": [], "owners": [], "changes": []}
NONE = Upcoming([], {}, [], {})


def job(number: int, **changes: Any) -> HolderRecord:
    held = HolderRecord(f"jaaaaaaa{'abc'[number]}", "ann", "", number, State.QUEUED, 5.0, None, (), ())
    return replace(held, **changes)


def test_devices_show_whose_they_are() -> None:
    hosts = [
        HostRecord("n1", ("0", "1", "2")),
        HostRecord("n2", ("0",), is_up=False),
        HostRecord("n3", ("0",), is_draining=True, reason="mended"),
    ]
    runs = job(1, state=State.RUNNING, name="digits", held=(("n1", ("0",)),), leaving=(("n1", ("1",)),))
    waits = job(2, waiting_since=40.0)
    view = pool_view(views.cluster(hosts, [runs, waits]), [runs, waits], NOTHING, NONE, 2.3, "1 h", 100.0)
    assert [[cell.state for cell in box.cells] for box in view.boxes] == [
        ["used", "leaving", "free"],
        ["down"],
        ["draining"],
    ]
    used = view.boxes[0].cells[0]
    assert (used.job, used.mark, used.title) == (runs.id, Mark("A", 1), "device 0: digits of ann")
    assert view.boxes[0].cells[1].title.endswith("its worker is leaving")
    assert view.boxes[2].reason == "mended"
    assert view.tiles == [
        Tile("Devices used", "2 of 4"),
        Tile("Jobs that run", "1"),
        Tile("Jobs that wait", "1"),
        Tile("Longest wait", "1 min"),
        Tile("Device hours today", "2.3"),
    ]


def test_the_table_says_what_the_picture_shows() -> None:
    timeline = NOTHING | {
        "rows": [{"host": "n1", "device": "0"}],
        "jobs": [{"id": "jaaaaaaaa", "name": "", "owner": "ann", "number": 27}],
        "bars": [(0, 0, 1.0, 2.0, 1), (0, None, 3.0, 4.0, 0)],
        "reasons": ["", "room for it"],
    }
    view = pool_view(views.cluster([], []), [], timeline, NONE, 2.3, "7 d", 5.0)
    assert [(had.slot, had.job, had.name, had.mark, had.reason) for had in view.had] == [
        ("n1 0", None, "several jobs", None, ""),
        ("n1 0", "jaaaaaaaa", "jaaaaaaaa", Mark("A", 3), "room for it"),
    ]
    assert view.chart == "/api/v1/timeline?last=604800"
    assert [window.address for window in view.windows if window.is_chosen] == ["/pool?window=7+d"]
    long = pool_view(
        views.cluster([], []), [], timeline | {"bars": [(0, 0, 1.0, 2.0, 0)] * 250}, NONE, 0.0, "1 h", 5.0
    )
    assert (len(long.had), long.left_out) == (MOST_ROWS, 50)


def test_what_happens_next_is_in_order() -> None:
    starts = {"j9": Start("j9", 90.0, 2, ("j4",), True), "j8": Start("j8", 300.0, 2, ("j4", "j5"), False)}
    coming = Upcoming(
        ["j9", "j8"], starts, [(60.0, "j4"), (400.0, "j5")], {"j4": "a", "j5": "b", "j8": "j8", "j9": "c"}
    )
    view = pool_view(views.cluster([], []), [], NOTHING, coming, 0.0, "1 h", 5.0)
    assert [(one.job, one.name, one.text) for one in view.following] == [
        ("j4", "a", "ends about 00:01 UTC"),
        ("j9", "c", "starts when j4 ends, about 00:01 UTC"),
        ("j8", "j8", "starts when j4 and j5 have ended, about 00:05 UTC"),
        ("j5", "b", "ends about 00:06 UTC"),
    ]


def test_a_suspended_device_says_until_when() -> None:
    runs = job(1, state=State.RUNNING, name="digits", held=(("n1", ("0", "1")),))
    retried = {("n1", "0"): 130.0, ("n1", "1"): 90.0, ("n2", "0"): 130.0}
    cluster = views.cluster([HostRecord("n1", ("0", "1")), HostRecord("n2", ("0",))], [runs], retried)
    first, second, third = [
        cell for box in pool_view(cluster, [runs], NOTHING, NONE, 0, "1 h", 100.0).boxes for cell in box.cells
    ]
    assert (first.state, first.retried) == ("suspended", 130.0)
    assert "suspended after a failure until 1970-01-01 00:02:10 UTC" in first.title
    assert (second.state, second.retried, third.state) == ("used", None, "free")
