"""What a job reports, drawn in a real browser."""

import json

from live_jobs import HOSTILE, a_running_job, record, reported
from pages import Site


def test_a_table_that_is_open_stays_so_and_plots_come_with_the_first_report(site: Site) -> None:
    job = a_running_job(site)
    events = site.world.files(job).output.events
    with site.page("ann") as page:
        page.goto(f"/jobs/{job}")
        page.get_by_text("Nothing has been reported yet").wait_for()
        page.get_by_text("live", exact=True).wait_for()
        events.write_text(reported(1, loss=0.5) + reported(2, loss=0.25))
        record(site, job, target=3)
        page.locator("#plots[data-points='2'] canvas").first.wait_for()
        page.get_by_text("As a table").click()
        record(site, job, target=4, reason="seen once the page is fetched again")
        page.get_by_text("seen once the page is fetched again").wait_for()
        assert page.locator("#points").evaluate("one => one.open")
    assert site.errors == []


def test_values_that_are_reported_later_can_be_chosen_and_what_is_chosen_stays(site: Site) -> None:
    job = a_running_job(site)
    events = site.world.files(job).output.events
    events.write_text(reported(1, loss=0.5) + reported(2, loss=0.25))
    with site.page("ann") as page:
        page.goto(f"/jobs/{job}")
        page.get_by_text("live", exact=True).wait_for()
        page.get_by_label("logarithmic").check()
        page.get_by_label("Over").select_option("clock")
        with events.open("a") as file:
            file.write(reported(3, loss=0.2, accuracy=0.9))
        record(site, job, target=4, reason="seen once the page is fetched again")
        page.get_by_label("accuracy").check()
        assert page.get_by_label("logarithmic").is_checked()
        record(site, job, target=3, reason="and again")
        page.get_by_text("and again").wait_for()
        assert page.get_by_label("accuracy").is_checked()
        page.get_by_role("button", name="Plot").click()
        page.locator("#plots[data-x=clock][data-log='1']").wait_for()
        assert page.get_by_role("cell", name="0.2 (best)").is_visible()
    assert site.errors == []


def test_pictures_are_zoomed_and_moved_by_the_keyboard_alone(site: Site) -> None:
    job = a_running_job(site)
    resumed = {
        "event": "resumed",
        "time": 1e6 + 3,
        "generation": 2,
        "from": 1,
        "to": 2,
        "pause": 1.5,
        "phases": {},
    }
    site.world.files(job).output.events.write_text(
        "".join(reported(step, loss=1 / step) for step in range(1, 3))
        + json.dumps({**resumed, "phases": {}})
        + "\n"
        + "".join(reported(step, loss=1 / step) for step in range(4, 51))
    )
    shown = "echarts.getInstanceByDom(document.getElementById('plots')).getOption().dataZoom[0]"
    with site.page("ann") as page:
        page.goto(f"/jobs/{job}")
        page.locator("#plots[data-points='49']").wait_for()
        for name, start, end in (
            ("Zoom in", 25, 75),
            ("Earlier", 0, 50),
            ("Later", 25, 75),
            ("Zoom out", 0, 100),
            ("Zoom in", 25, 75),
            ("All", 0, 100),
        ):
            page.get_by_role("button", name=name, exact=True).focus()
            page.keyboard.press("Enter")
            assert page.evaluate(f"[{shown}.start, {shown}.end]") == [start, end], name
        mark = shown.replace("dataZoom[0]", "series[0].markLine.data[0].description")
        assert page.evaluate(mark) == "1→2 workers: no step for 1.5 s, until 13:46:43 UTC"
        site.check_access(page)
    assert site.errors == []


def test_plots_go_on_and_keep_their_zoom(site: Site) -> None:
    job = a_running_job(site)
    events = site.world.files(job).output.events
    resumed = {
        "event": "resumed",
        "time": 1e6 + 50,
        "generation": 2,
        "from": 1,
        "to": 2,
        "pause": 5.0,
        "phases": {},
    }
    events.write_text("".join(reported(step, loss=1 / step, **{HOSTILE: 2.0}) for step in range(1, 51)))
    with events.open("a") as file:
        file.write(json.dumps(resumed) + "\n")
    with site.page("ann") as page:
        page.clock.install()
        page.goto(f"/jobs/{job}")
        page.locator("#plots[data-points='50']").wait_for()
        zoomed = (
            "echarts.getInstanceByDom(document.getElementById('plots')).getOption().dataZoom[0].startValue"
        )
        page.evaluate(
            "echarts.getInstanceByDom(document.getElementById('plots'))"
            ".dispatchAction({type: 'dataZoom', dataZoomIndex: 0, start: 40, end: 60})"
        )
        drawn, start = page.locator("#plots canvas").first.screenshot(), page.evaluate(zoomed)
        with events.open("a") as file:
            file.write(reported(60, loss=0.01))
        page.get_by_text("live", exact=True).wait_for()
        record(site, job, step=60)
        page.locator("[data-field=progress]").get_by_text("60%").wait_for()
        page.clock.run_for(6000)
        page.locator("#plots[data-points='51']").wait_for()
        assert page.evaluate(zoomed) == start > 1
        assert "the tables below say the same" in (page.locator("#plots").get_attribute("aria-label") or "")
        assert page.locator("#plots canvas").first.screenshot() != drawn
        page.get_by_label(HOSTILE.replace("\x1b", "").strip()[:8]).check()
        page.get_by_label("Over").select_option("clock")
        page.get_by_role("button", name="Plot").click()
        page.locator("#plots[data-x=clock][data-points='51']").wait_for()
    assert site.errors == []


def test_every_size_is_drawn_however_many_points_are_left_of_the_rest(site: Site) -> None:
    job = a_running_job(site)
    lines = [reported(1, loss=1.0)]
    for number, (before, after) in enumerate([(2, 1), (1, 2), (2, 3), (3, 2)]):
        event = {"event": "resumed", "time": 1e6 + 2 + number, "generation": 2, "from": before, "to": after}
        lines.append(json.dumps({**event, "pause": 0.5, "phases": {}}) + "\n")
        lines.append(reported(3 + number, loss=0.5))
    lines += [reported(step, loss=1 / step) for step in range(10, 5000)]
    site.world.files(job).output.events.write_text("".join(lines))
    drawn = "echarts.getInstanceByDom(document.getElementById('plots')).getOption().series.at(-1).data"
    with site.page("ann") as page:
        for axis, sizes in {"step": [2, 1, 2, 3, 2, 2], "clock": [2, 2, 1, 1, 2, 2, 3, 3, 2, 2]}.items():
            page.goto(f"/jobs/{job}?x={axis}")
            page.locator("#plots[data-points] canvas").first.wait_for()
            assert page.evaluate(f"{drawn}.map(([, size]) => size)") == sizes
    assert site.errors == []
