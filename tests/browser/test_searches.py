"""Searches in a real browser."""

import json
import math
import re
import time
from dataclasses import replace
from typing import Any

import pytest

from edt_launch.service.bus import Topic
from edt_launch.service.database.search_records import SearchRecord, SearchState, TrialRecord, TrialState
from pages import LOOKS, Site, is_too_wide
from tiers import full
from world import NOW, tar

ID = "haaaaaaaa"
HOSTILE = '<img src=x onerror="alert(1)">\u202e'
SPEC: dict[str, Any] = {
    "algorithm": "random",
    "metric": "loss",
    "objective": "minimize",
    "parameters": {
        "rate": {"type": "float", "min": -4, "max": -1, "base": 10},
        "units": {"values": [16, 32, 64]},
        HOSTILE: {"values": ["adam", HOSTILE]},
    },
}


def a_search(site: Site, trials: int) -> None:
    """Every fifth trial has failed; the first one has a job that has reported its loss."""
    store = site.world.store
    job = site.world.submit(site.world.ann, name="find-0")["id"]
    lines = [
        {"event": "progress", "time": NOW, "step": step, "size": 1, "epoch": 0, "values": {"loss": 1 / step}}
        for step in range(1, 9)
    ]
    site.world.files(job).output.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    template = {"command": ["python", HOSTILE], "min": 1, "max": 1}
    search = SearchRecord(
        ID, HOSTILE, "ann", SPEC, "", 7, NOW - 100, template=template, total=trials, state=SearchState.RUNNING
    )
    store.searches.add(search)
    for number in range(trials):
        add_trial(site, number, job if number == 0 else None)


def add_trial(site: Site, number: int, job: str | None = None) -> None:
    has_failed = number % 5 == 4
    rate = 10 ** (-4 + 3 * (number * 7 % 20) / 20)
    parameters = {"rate": rate, "units": (16, 32, 64)[number % 3], HOSTILE: ("adam", HOSTILE)[number % 2]}
    site.world.store.searches.add_trial(
        TrialRecord(
            ID,
            number,
            {},
            parameters,
            0,
            NOW,
            job=job,
            state=TrialState.FAILED if has_failed else TrialState.SUCCEEDED,
            metric=None if has_failed else abs(math.log10(rate) + 2.5),
            reason=HOSTILE if has_failed else "",
        )
    )


def test_trials_are_looked_at_by_pointer_and_by_keyboard(site: Site) -> None:
    a_search(site, 20)
    with site.page("ann", viewport={"width": 1200, "height": 1400}) as page:
        page.goto("/searches")
        page.get_by_role("link", name="<img src=x").click()
        pictures = page.locator("#parallel[data-trials='20'][data-looked='20']")
        pictures.wait_for()
        box = page.locator("#parallel").bounding_box()
        assert box is not None
        drawn = page.locator("#parallel canvas").screenshot()
        axis = box["x"] + 40  # the rate
        page.mouse.move(axis, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(axis, box["y"] + 200, steps=4)
        page.mouse.up()
        page.locator("#parallel:not([data-looked='20'])").wait_for()
        assert page.locator("#parallel canvas").screenshot() != drawn
        looked = int(page.locator("#parallel").get_attribute("data-looked") or 0)
        assert 0 < looked < 20
        assert page.locator("#rows tbody tr").count() == looked
        page.get_by_text("Axes", exact=True).click()
        assert page.get_by_label("rate from").input_value() != ""
        page.get_by_role("button", name="Look at all trials").click()
        pictures.wait_for()

        page.get_by_label("loss to").fill("0.5")
        page.keyboard.press("Tab")
        # those that have failed end in a lane below all others
        values = [abs(-4 + 3 * (number * 7 % 20) / 20 + 2.5) for number in range(20)]
        fitting = sum(value <= 0.5 or number % 5 == 4 for number, value in enumerate(values))
        page.locator(f"#parallel[data-looked='{fitting}']").wait_for()
        page.get_by_label("loss from").fill("0")
        page.keyboard.press("Tab")
        fitting = sum(value <= 0.5 and number % 5 < 4 for number, value in enumerate(values))
        page.locator(f"#parallel[data-looked='{fitting}']").wait_for()
        page.reload()
        page.locator(f"#parallel[data-looked='{fitting}']").wait_for()  # the bounds are in the address
        page.get_by_text("Axes", exact=True).click()
        assert page.get_by_label("loss to").input_value() == "0.5"
        page.get_by_label("units further to the right").press("Enter")
        page.get_by_label("Flip rate").check()
        page.get_by_role("combobox", name="Across").select_option("n")
        assert re.search(r"axis=p.rate.*axis=p.units&axis=m&x=n&y=m&within=m", page.url)
        page.get_by_role("link", name="Trial", exact=True).click()
        page.get_by_role("button", name="Look at all trials").click()
        pictures.wait_for()
        page.get_by_label("Show the curve of trial 0").check()
        page.locator("#curves[data-curves='1'] canvas").wait_for()
        page.reload()
        page.locator("#parallel[data-trials='20']").wait_for()
        assert page.get_by_label("Flip rate").is_checked()
        assert page.locator("#rows tbody th").first.inner_text().strip() == "0"
        assert page.title() != "won"
    assert site.errors == []


LABELS = """name => echarts.getInstanceByDom(document.getElementById(name)).getZr().storage.getDisplayList()
    .filter(one => one.type === 'tspan' && !one.ignore && !one.invisible).map(one => one.style.text)"""


def test_bounds_that_make_no_sense_are_refused_at_their_field(site: Site) -> None:
    a_search(site, 20)
    with site.page("ann", viewport={"width": 1200, "height": 1400}) as page:
        page.goto(f"/searches/{ID}")
        page.locator("#parallel[data-looked='20']").wait_for()
        assert page.locator("#rows caption").inner_text() == "20 trials"
        page.get_by_text("Axes", exact=True).click()
        low = page.get_by_label("loss from")
        low.fill("abc")
        page.keyboard.press("Tab")
        assert low.evaluate("field => field.validationMessage") == "this is no number"
        assert page.locator("#parallel").get_attribute("data-looked") == "20"
        assert "NaN" not in page.url
        low.fill("0")
        page.keyboard.press("Tab")
        page.locator("#parallel[data-looked='16']").wait_for()
        assert low.evaluate("field => field.validationMessage") == ""
        assert page.locator("#rows caption").inner_text() == "16 of 20 trials are looked at"
        high = page.get_by_label("loss to")
        high.fill("-1")
        page.keyboard.press("Tab")
        assert high.evaluate("field => field.validationMessage") == "this is less than the field before it"
        assert page.locator("#parallel").get_attribute("data-looked") == "16"
    assert site.errors == []


def test_the_lane_of_failed_trials_is_labelled(site: Site) -> None:
    a_search(site, 20)
    store = site.world.store.searches
    fine = [trial for trial in store.trials(ID) if trial.metric is not None]
    with site.page("ann", viewport={"width": 1200, "height": 1400}) as page:
        for low, width in ((100.0, 680.0), (0.5, 0.0), (0.001, 1000.0)):  # in the first, the lane is near 0
            for place, trial in enumerate(fine):
                store.update_trial(replace(trial, metric=low + width * place / 15))
            page.goto(f"/searches/{ID}")
            page.locator("#parallel[data-looked='20']").wait_for()
            assert page.evaluate(LABELS, "parallel").count("failed") == 1
        for trial in fine:
            store.update_trial(replace(trial, state=TrialState.FAILED, metric=None))
        page.reload()
        page.locator("#parallel[data-looked='20']").wait_for()
        assert page.evaluate(LABELS, "parallel").count("failed") == 1
    assert site.errors == []


def test_trials_that_end_are_seen_without_a_reload(site: Site) -> None:
    a_search(site, 3)
    with site.page("ann") as page:
        page.clock.install()
        page.goto(f"/searches/{ID}")
        page.locator("#parallel[data-trials='3']").wait_for()
        page.get_by_text("live", exact=True).wait_for()
        add_trial(site, 3)
        site.world.bus.notify(Topic.SEARCHES)
        page.clock.run_for(6000)
        page.clock.run_for(6000)
        page.locator("#parallel[data-trials='4']").wait_for()
        assert page.locator("#rows tbody tr").count() == 4
        page.get_by_role("link", name="Stop").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("No trial starts any more").wait_for()
        site.check_access(page)
        dialog.get_by_role("button", name="Stop").focus()
        page.keyboard.press("Enter")
        dialog.wait_for(state="hidden")
    search = site.world.store.searches.get(ID)
    assert search is not None
    assert search.wanted == "stop"
    assert site.errors == []


@pytest.mark.parametrize("look", ["light", full("dark"), full("forced")])
def test_everybody_can_use_the_pages(site: Site, look: str) -> None:
    a_search(site, 12)
    with site.page("ann", viewport={"width": 320, "height": 640}, **LOOKS[look]) as page:
        for path in ("", f"/{ID}?tab=input", f"/{ID}?tab=best", f"/{ID}", "/new", f"/{ID}/stop"):
            page.goto(f"/searches{path}")
            if path == f"/{ID}":
                page.locator("#parallel[data-trials]").wait_for()
                page.get_by_text("Axes", exact=True).click()
                page.get_by_label("Show the curve of trial 0").check()
                page.locator("#curves canvas").wait_for()
            site.check_access(page)
            assert not is_too_wide(page), path
    assert site.errors == []


@pytest.mark.full
def test_searches_work_without_scripts(site: Site) -> None:
    with site.page("ann", java_script_enabled=False) as page:
        page.goto("/searches")
        page.get_by_role("link", name="New search").click()
        page.get_by_label("Name", exact=True).fill("find")
        page.get_by_label("Command").fill("python train.py --rate {rate}")
        code = {
            "name": "code.tar.gz",
            "mimeType": "application/gzip",
            "buffer": tar({"train.py": b"print()"}),
        }
        page.get_by_label("Code").set_input_files([code])  # type: ignore[list-item]
        page.get_by_label("Parameter 1", exact=True).fill("rate")
        page.get_by_label("Values of parameter 1").fill("0.1, 0.01")
        page.get_by_label("Metric").fill("loss")
        page.get_by_role("button", name="Start").click()
        page.get_by_role("heading", name="find").wait_for()
        page.get_by_role("link", name="Input").click()
        page.get_by_text("0.1, 0.01").wait_for()
        page.get_by_role("link", name="Stop").click()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("heading", name="find").wait_for()
    assert site.errors == []


def test_trials_are_listed_a_hundred_at_first_and_more_when_asked_for(site: Site) -> None:
    a_search(site, 250)
    with site.page("ann") as page:
        page.goto(f"/searches/{ID}")
        page.get_by_text("250 trials, the first 100 are listed").wait_for()
        more = page.get_by_role("link", name="More trials")
        for listed in (200, 250):
            more.click()
            page.locator(f"#rows tbody tr:nth-child({listed})").wait_for()
            page.evaluate("document.body.dispatchEvent(new CustomEvent('edt:changed'))")
        page.wait_for_timeout(100)
        assert page.locator("#rows tbody tr").count() == 250
        assert not more.is_visible()
    assert site.errors == []


@pytest.mark.full
def test_a_thousand_trials_stay_fluent(site: Site) -> None:
    a_search(site, 1000)
    with site.page("ann") as page:
        begin = time.perf_counter()
        page.goto(f"/searches/{ID}")
        page.locator("#parallel[data-trials='1000']").wait_for()
        print(f"1,000 trials: {time.perf_counter() - begin:.3f} s until they are drawn")
        page.get_by_text("Axes", exact=True).click()
        took = page.get_by_label("Flip rate").evaluate(
            """async (one) => { const begin = performance.now(); one.click();
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return performance.now() - begin; }"""
        )
        print(f"drawn again in {took:.0f} ms")
        assert page.locator("#rows tbody tr").count() == 100
    assert site.errors == []
