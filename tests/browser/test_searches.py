"""Searches in a real browser."""

import re

from playwright.sync_api import expect

from edt_launch.service.bus import Topic
from pages import PATIENCE, Site, until_other_picture
from some_search import ID, a_search, add_trial

LIMIT = 1000 * PATIENCE
VALUES = [abs(-4 + 3 * (number * 7 % 20) / 20 + 2.5) for number in range(20)]
"""The objective of each trial, also of those that have failed."""
LABELS = """echarts.getInstanceByDom(document.getElementById("parallel")).getZr().storage.getDisplayList()
    .filter(one => one.type === "tspan" && !one.ignore && !one.invisible).map(one => one.style.text)"""
ONE_FAILED = f"{LABELS}.filter(text => text === 'failed').length === 1"
"""There is one label of the lane of those that have failed."""
CHANGED = "document.body.dispatchEvent(new CustomEvent('edt:changed'))"


def test_trials_are_looked_at_by_pointer_and_by_keyboard(site: Site) -> None:
    a_search(site, 20)
    with site.page("ann", viewport={"width": 1200, "height": 1400}) as page:
        page.clock.install()
        page.goto("/experiments")
        page.get_by_role("link", name="<img src=x").click()
        pictures = page.locator("#parallel[data-trials='20'][data-looked='20']")
        pictures.wait_for()
        page.wait_for_function(ONE_FAILED)
        box = page.locator("#parallel").bounding_box()
        assert box is not None
        drawn = page.locator("#parallel canvas").screenshot()
        axis = box["x"] + 40  # the rate
        page.mouse.move(axis, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(axis, box["y"] + 80, steps=2)
        with page.expect_response(f"**/api/v1/searches/{ID}"):  # what ends in the meantime is drawn later
            page.evaluate(CHANGED)
            page.clock.run_for(6000)
        page.mouse.move(axis, box["y"] + 200, steps=4)
        page.mouse.up()
        about_half = re.compile(r"^([5-9]|1[0-5])$")
        expect(page.locator("#parallel")).to_have_attribute("data-looked", about_half, timeout=LIMIT)
        until_other_picture(page.locator("#parallel canvas"), drawn)
        looked = int(page.locator("#parallel").get_attribute("data-looked") or 0)
        expect(page.locator("#rows tbody tr")).to_have_count(looked, timeout=LIMIT)
        page.get_by_text("Axes", exact=True).click()
        assert page.get_by_label("rate from").input_value() != ""
        page.get_by_role("button", name="Show all trials").click()
        pictures.wait_for()

        high = page.get_by_label("loss to")
        high.fill("0.5")
        page.keyboard.press("Tab")
        # those that have failed end in a lane below all others
        fitting = sum(value <= 0.5 or number % 5 == 4 for number, value in enumerate(VALUES))
        page.locator(f"#parallel[data-looked='{fitting}']").wait_for()
        low = page.get_by_label("loss from")
        low.fill("1")
        page.keyboard.press("Tab")
        assert high.evaluate("field => field.validationMessage") == "this is less than the field before it"
        assert page.locator("#parallel").get_attribute("data-looked") == str(fitting)
        low.fill("0")
        page.keyboard.press("Tab")
        fitting = sum(value <= 0.5 and number % 5 < 4 for number, value in enumerate(VALUES))
        page.locator(f"#parallel[data-looked='{fitting}']").wait_for()
        caption = page.locator("#rows caption")
        expect(caption).to_have_text(f"{fitting} of 20 trials are looked at", timeout=LIMIT)
        page.reload()
        page.locator(f"#parallel[data-looked='{fitting}']").wait_for()  # the bounds are in the address
        page.get_by_text("Axes", exact=True).click()
        assert page.get_by_label("loss to").input_value() == "0.5"
        page.get_by_role("button", name="Show all trials").click()
        pictures.wait_for()
        page.get_by_label("Show the curve of trial 0").check()
        page.locator("#curves[data-curves='1'] canvas").wait_for()
    assert site.errors == []


def test_trials_that_end_are_seen_without_a_reload(site: Site) -> None:
    a_search(site, 3)
    with site.page("ann") as page:
        page.clock.install()
        page.goto(f"/experiments/{ID}")
        page.locator("#parallel[data-trials='3']").wait_for()
        page.get_by_text("live", exact=True).wait_for()
        add_trial(site, 3)
        site.world.bus.notify(Topic.SEARCHES)
        page.clock.run_for(6000)
        page.clock.run_for(6000)
        page.locator("#parallel[data-trials='4']").wait_for()
        expect(page.locator("#rows tbody tr")).to_have_count(4, timeout=LIMIT)
        page.get_by_role("link", name="Stop").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("No trial starts any more").wait_for()
        site.check_access(page)
        dialog.get_by_role("button", name="Stop").focus()
        page.keyboard.press("Enter")
        dialog.wait_for(state="hidden")
    search = site.world.store.experiments.search(ID)
    assert search is not None
    assert search.wanted == "stop"
    assert site.errors == []
