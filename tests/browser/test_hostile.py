"""What strangers write, wherever it is shown: it stays text, and the pages stay usable."""

import json

import pytest

from edt_launch.service.database.records import AllocationRecord
from edt_launch.service.states import State
from pages import Site, is_too_wide
from world import NOW, post_job, tar

MARKUP = "<img src=x onerror=\"document.title='won'\"><script>document.title='won'</script>"
BIDI = "\u202egnp.exe\u2066"
COLOURS = "\x1b[31mred\x1b]0;won\x07\x1b[2J"
NAME = f"{MARKUP[:60]}{BIDI}"
ODD = {MARKUP: 1.0, "constructor": -1.0, BIDI: float("nan")}
IMPOSSIBLE = {MARKUP: 1.0, BIDI: float("nan"), "loss": float("inf"), "ok": 10**400, "__proto__": 1.0}


def a_job(site: Site, log_line: int, values: dict[str, float]) -> str:
    """A job of such a name that has printed lines, one of that many bytes, and reported values."""
    world = site.world
    code = tar({f"{BIDI}<b>.py": b"print()", "train.py": b"print()"})
    job: str = post_job(world.ann, code=code, name=NAME, max=2, environment={"A": MARKUP}).json()["id"]
    world.go(job, State.STARTING, State.RUNNING)
    held = (("node1", ("0",)),)
    world.store.jobs.record(
        {job: {"size": 1, "target": 1, "held": held, "reason": MARKUP, "failure": MARKUP}}
    )
    world.store.history.add([AllocationRecord(job, "ann", NOW - 60, 0, 1, held, MARKUP)])
    folder = world.files(job)
    with folder.launcher_log.open("w") as log:
        log.write(f"[0] {MARKUP} {BIDI} {COLOURS}\n")
        log.write("x" * log_line + "\n")
        log.write("[0] after the long line\n")
    progress = {"event": "progress", "size": 1, "epoch": None, "values": values}
    lines = [json.dumps({**progress, "time": NOW + step, "step": step}) + "\n" for step in range(1, 20)]
    folder.output.events.write_text("".join(lines))
    (folder.output.model / f"{BIDI}<i>.pt").write_bytes(b"weights")
    return job


@pytest.mark.full
def test_names_logs_values_and_files_stay_text(site: Site) -> None:
    job = a_job(site, 10_000_000, IMPOSSIBLE)
    with site.page("ann", "/pool", viewport={"width": 320, "height": 640}) as page:
        page.locator("#chart[data-bars='1']").wait_for()
        assert not is_too_wide(page)
        assert page.get_by_text(MARKUP[:60]).first.is_visible()
        for path in ("/jobs", "/jobs?text=%3Cimg", f"/jobs/{job}/stop", f"/selected?action=stop&job={job}"):
            page.goto(path)
            assert page.get_by_text(MARKUP[:60]).first.is_visible(), path
            assert not is_too_wide(page), path
        for tab in ("monitor", "size", "logs", "events", "results", "definition"):
            page.goto(f"/jobs/{job}?tab={tab}")
            assert not is_too_wide(page), tab
            assert page.locator("img, script:not([src])").count() == 0, tab
        page.goto(f"/jobs/{job}?tab=logs")
        page.locator("#log").get_by_text("after the long line").wait_for()
        shown = page.locator("#log").inner_text()
        assert "\x1b" not in shown
        assert "won\x07" not in shown
        page.goto(f"/jobs/{job}?tab=logs&text=onerror")
        page.get_by_role("link", name="<img src=x").click()
        page.get_by_text("[0] <img src=x").first.wait_for()
        assert page.title() != "won"
    assert site.errors == []


def test_values_with_odd_names_are_plotted(site: Site) -> None:
    job = a_job(site, 100, ODD)
    with site.page("ann", f"/jobs/{job}") as page:
        page.locator("#plots[data-points]").wait_for()
        for box in page.get_by_role("group", name="Values").get_by_role("checkbox").all():
            box.check()
        page.get_by_label("logarithmic").check()
        page.get_by_label("Smoothing").select_option("0.9")
        page.get_by_role("button", name="Plot").click()
        page.locator("#plots[data-log='1'][data-points='19']").wait_for()
        assert page.get_by_role("row", name=BIDI).get_by_role("cell", name="19").is_visible()
        assert page.title() != "won"
    assert site.errors == []
