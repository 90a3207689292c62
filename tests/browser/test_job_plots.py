"""What a job reports, drawn in a real browser."""

import json

from live_jobs import HOSTILE, a_running_job, record, reported
from pages import Site, until_other_picture

CHART = "echarts.getInstanceByDom(document.getElementById('plots'))"


def resumed(step: int, before: int, after: int) -> str:
    event = {"event": "resumed", "time": 1e6 + step, "generation": 2, "from": before, "to": after}
    return json.dumps({**event, "pause": 0.5, "phases": {}}) + "\n"


def test_plots_come_with_the_first_report_and_what_is_chosen_stays(site: Site) -> None:
    job = a_running_job(site)
    events = site.world.files(job).output.events
    with site.page("ann", f"/jobs/{job}") as page:
        page.get_by_text("Nothing reported yet").wait_for()
        page.get_by_text("live", exact=True).wait_for()
        events.write_text(reported(1, loss=0.5) + reported(2, loss=0.25))
        record(site, job, target=3)
        page.locator("#plots[data-points='2'] canvas").first.wait_for()
        page.get_by_label("Log scale").check()
        page.locator("#plots[data-log='1']").wait_for()
        page.get_by_label("X axis").select_option("clock")
        page.locator("#plots[data-x=clock][data-log='1']").wait_for()
        page.get_by_text("As a table").click()
        with events.open("a") as file:
            file.write(reported(3, loss=0.2, accuracy=0.9))
        record(site, job, target=4, reason="seen once the page is fetched again")
        page.get_by_text("Seen once").wait_for()
        assert page.locator("#points").evaluate("one => one.open")
        page.get_by_label("accuracy").check()
        page.locator("#plots[data-url*=accuracy]").wait_for()
        axes = f"{CHART}.getModel().queryComponents({{mainType: 'xAxis'}})"
        spans = f"{axes}.map(one => one.axis.scale.getExtent())"
        page.wait_for_function(f"{spans}.length === 4")
        assert len(set(map(tuple, page.evaluate(spans)))) == 1  # also where a metric came late
        assert page.get_by_label("Log scale").is_checked()
        page.get_by_role("cell", name="0.2 (best)").wait_for()
    assert site.errors == []


def test_plots_are_zoomed_by_the_keyboard_alone_and_go_on(site: Site) -> None:
    job = a_running_job(site)
    events = site.world.files(job).output.events
    lines = [reported(step, loss=1 / step, **{HOSTILE: 2.0}) for step in range(1, 51)]
    events.write_text("".join([*lines[:2], resumed(3, 1, 2), *lines[3:]]))
    shown = f"{CHART}.getOption().dataZoom[0]"
    with site.page("ann") as page:
        page.clock.install()
        page.goto(f"/jobs/{job}")
        page.locator("#plots[data-points='49']").wait_for()
        for name, start, end in (
            ("Zoom out", 0, 100),
            ("Zoom in", 25, 75),
            ("Earlier", 0, 50),
            ("Later", 25, 75),
            ("All", 0, 100),
            ("Zoom in", 25, 75),
        ):
            page.get_by_role("button", name=name, exact=True).focus()
            page.keyboard.press("Enter")
            assert page.evaluate(f"[{shown}.start, {shown}.end]") == [start, end], name
        mark = f"{CHART}.getOption().series[0].markLine.data[0].description"
        assert page.evaluate(mark) == "1→2 workers: no step for 0.5 s, until 13:46:43 UTC"
        drawn, start = page.locator("#plots canvas").first.screenshot(), page.evaluate(f"{shown}.startValue")
        with events.open("a") as file:
            file.write(reported(60, loss=0.01))
        page.get_by_text("live", exact=True).wait_for()
        record(site, job, step=60)
        page.locator("[data-field=progress]").get_by_text("60%").wait_for()
        page.clock.run_for(6000)
        page.locator("#plots[data-points='50']").wait_for()
        assert page.evaluate(f"{shown}.startValue") == start > 1
        assert "the tables below have the same data" in (
            page.locator("#plots").get_attribute("aria-label") or ""
        )
        until_other_picture(page.locator("#plots canvas").first, drawn)
    assert site.errors == []
