"""The pool, live, in a real browser."""

from playwright.sync_api import expect

from edt_launch.service.bus import Topic
from edt_launch.service.cluster.records import AllocationRecord, HostRecord
from edt_launch.service.jobs.states import State
from pages import PATIENCE, Site, until_other_picture
from world import NOW


def give(site: Site, job: str, before: int, *devices: str, ago: float = 0) -> None:
    """Let a job have other devices, as the loop does."""
    held = (("node1", devices),) if devices else ()
    site.world.store.history.add(
        [AllocationRecord(job, "ann", NOW - ago, before, len(devices), held, "for the test")]
    )
    size = len(devices)
    site.world.store.jobs.record({job: {"size": size, "target": size, "held": held}})
    site.world.bus.notify(Topic.JOBS)


def running(site: Site, name: str, *devices: str, ago: float) -> str:
    job: str = site.world.submit(site.world.ann, name=name, max=4)["id"]
    site.world.go(job, State.STARTING, State.RUNNING)
    give(site, job, 0, *devices, ago=ago)
    return job


def test_a_resize_is_seen_without_a_reload(site: Site) -> None:
    first = running(site, "first", "0", "1", "2", "3", ago=1800)
    with site.page("ann", "/pool") as page:
        page.locator("#chart[data-bars='4']").wait_for()
        page.evaluate("window.isSame = true")
        canvas = page.locator("#chart canvas").first
        drawn = canvas.screenshot()
        cells = page.locator(f"a.cell[href$='{first}']")
        assert cells.count() == 4
        give(site, first, 4, "0", "1", ago=600)
        second = running(site, "second", "2", "3", ago=600)
        page.locator(f"a.cell[href$='{second}']").nth(1).wait_for()
        page.locator("#chart[data-bars='6']").wait_for()
        until_other_picture(canvas, drawn)
        expect(cells).to_have_count(2, timeout=1000 * PATIENCE)
        assert page.evaluate("window.isSame")
        page.get_by_text("As a table").click()
        page.get_by_role("cell", name="second").first.wait_for()
        page.locator(f"a.cell[href$='{second}']").first.click()
        page.wait_for_url("**/jobs/*")
    with site.page("ann", "/pool", java_script_enabled=False) as page:
        assert page.get_by_role("cell", name="A first").first.is_visible()  # without opening the table
        assert not page.locator("#chart").is_visible()
    assert site.errors == []


def test_resizes_and_losses_are_marked_in_the_rows_of_their_job(site: Site) -> None:
    running(site, "other", "3", ago=1800)
    job = running(site, "first", "0", "1", "2", ago=1800)
    give(site, job, 3, "0", "1", ago=900)
    site.world.store.history.add(
        [AllocationRecord(job, "ann", NOW - 300, 2, 1, (("node1", ("0",)),), "for the test", lost=1)]
    )
    marks = (
        "name => echarts.getInstanceByDom(document.getElementById('chart')).getOption()"
        ".series.find(one => one.name === name).data.map(one => [one.value[0], one.description])"
    )
    with site.page("ann", "/pool") as page:
        page.locator("#chart[data-bars='4']").wait_for()
        assert page.evaluate(marks, "resizes") == [
            *([row, "first: 3→2"] for row in (0, 1, 2)),
            *([row, "first: 2→1"] for row in (0, 1)),
        ]
        page.get_by_role("button", name="Zoom in", exact=True).focus()
        page.keyboard.press("Enter")
        zoom = "echarts.getInstanceByDom(document.getElementById('chart')).getOption().dataZoom[0].start"
        assert page.evaluate(zoom) == 25
        assert page.evaluate(marks, "losses") == [[row, "first: lost a worker"] for row in (0, 1)]
    assert site.errors == []


def test_a_large_pool_has_a_row_a_host(site: Site) -> None:
    devices = tuple(map(str, range(16)))
    site.world.store.hosts.put(
        [HostRecord(f"node{number}", devices, source="test") for number in range(2, 11)]
    )
    running(site, "first", "0", "1", "2", ago=1800)
    with site.page("ann", "/pool") as page:
        page.locator("#chart[data-bands='1']").wait_for()
        page.locator("select[name=host]").select_option("node1")
        page.locator("#chart[data-bars='3']").wait_for()
        assert "host=node1" in page.url
        site.check_access(page)
    assert site.errors == []


def test_what_was_done_can_be_undone_from_the_message_that_says_so(site: Site) -> None:
    with site.page("admin", "/pool") as page:
        page.get_by_role("link", name="Drain node1").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Drain").click()
        page.get_by_role("link", name="Undrain node1").wait_for()
        site.check_access(page)
        page.get_by_text("Done: Drain node1.").get_by_role("link", name="Undo").click()
        dialog.get_by_role("button", name="Undrain").click()
        page.get_by_text("Done: Undrain node1.").wait_for()
    assert site.world.store.hosts.all()[0].state == "up"
    assert site.errors == []
