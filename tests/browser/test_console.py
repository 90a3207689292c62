"""The console in a real browser."""

import pytest
from playwright.sync_api import Page, Route

from edt_launch.service.bus import Topic
from edt_launch.service.database.records import HostRecord
from edt_launch.service.states import State, Wanted
from pages import LOOKS, Site, is_too_wide
from tiers import full
from world import tar

PAGES = ("applications", "applications?text=nothing", "groups", "hosts", "consumers")
HOSTILE = '<img src=x onerror="alert(1)">\u202e'


def by_keyboard(page: Page, button: str) -> None:
    """Press Enter on a button that the keyboard can reach."""
    page.get_by_role("button", name=button, exact=True).focus()
    page.keyboard.press("Enter")


def a_running_job(site: Site, client: str, name: str, *devices: str) -> str:
    job: str = site.world.submit(getattr(site.world, client), name=name, max=4)["id"]
    site.world.go(job, State.STARTING, State.RUNNING)
    held = (("node1", devices),)
    size = len(devices)
    site.world.store.jobs.record({job: {"size": size, "target": size, "held": held, "share": 2.0}})
    return job


def test_applications_are_chosen_and_given_a_priority_by_the_keyboard_alone(site: Site) -> None:
    job = a_running_job(site, "ann", "digits", "0", "1")
    with site.page("ann") as page:
        page.goto("/console")
        button = page.get_by_role("button", name="Update Priority")
        assert button.is_disabled()
        page.locator(f"#chosen-{job}").focus()
        page.keyboard.press("Space")
        assert button.is_enabled()
        site.world.submit(site.world.bob, name="another", max=4)
        page.get_by_role("link", name="another").wait_for()
        assert button.is_enabled()  # what is chosen stays so
        button.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("takes effect within a second").wait_for()
        site.check_access(page)
        dialog.get_by_label("Priority").fill("high")
        page.keyboard.press("Enter")
        dialog.get_by_text("give a whole number").wait_for()
        assert dialog.get_by_label("Priority").input_value() == "high"
        dialog.get_by_label("Priority").fill("2")
        by_keyboard(page, "Only say what would change")
        dialog.get_by_text("another of bob goes from 2 to 0.").wait_for()
        assert dialog.get_by_label("Priority").input_value() == "2"
        by_keyboard(page, "Set the priority")
        dialog.wait_for(state="hidden")
        assert site.world.store.jobs.get(job).priority == 2
        page.get_by_role("button", name="Retrieve Driver Logs").click()
        assert dialog.get_by_role("link", name="digits").get_attribute("download") == f"{job}.log"
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Stop").click()
        dialog.get_by_role("button", name="Stop").click()
        dialog.wait_for(state="hidden")
        assert page.url.endswith("/console/applications")
    assert site.world.store.jobs.get(job).wanted is Wanted.STOP
    assert [error for error in site.errors if "422" not in error] == []


def test_a_consumer_is_changed_after_a_look_at_who_gains_and_loses(site: Site) -> None:
    a_running_job(site, "ann", "first", "0", "1")
    a_running_job(site, "bob", "second", "2", "3")
    with site.page("admin") as page:
        page.goto("/console/consumers")
        page.evaluate("window.isSame = true")
        page.get_by_role("link", name="Edit ann").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("textbox", name="Weight").fill("3")
        page.keyboard.press("Enter")
        dialog.get_by_text("first of ann goes from 2 to 3.").wait_for()
        dialog.get_by_text("second of bob goes from 2 to 1.").wait_for()
        site.check_access(page)
        site.world.admin.put("/shares/ann", json={"weight": 2})  # somebody else is quicker
        dialog.get_by_role("button", name="Save").click()
        dialog.get_by_text("ann was changed by admin").wait_for()
        assert dialog.get_by_role("textbox", name="Weight").input_value() == "3"
        dialog.get_by_role("button", name="Preview").click()
        dialog.get_by_text("Weight: 2 → 3.").wait_for()
        dialog.get_by_role("button", name="Save").focus()
        page.keyboard.press("Enter")
        dialog.wait_for(state="hidden")
        page.locator("tr", has_text="ann,").get_by_role("cell", name="3", exact=True).wait_for()
        assert page.evaluate("window.isSame")
    assert [error for error in site.errors if "409" not in error] == []


def test_what_an_application_would_start_with_is_seen_while_it_is_described(site: Site) -> None:
    a_running_job(site, "bob", "second", "0", "1", "2", "3")
    with site.page("ann") as page:
        page.goto("/console/run")
        preview = page.locator("#preview")
        preview.get_by_text("It starts at once with 1.").wait_for()
        page.get_by_label("Name").fill("digits")
        preview.get_by_text("digits starts at once with 1.").wait_for()
        page.get_by_label("Workers at most").fill("4")
        preview.get_by_text("digits starts at once with 2.").wait_for()
        preview.get_by_text("second of bob goes from 4 to 2.").wait_for()
        page.get_by_label("Workers at least").fill("8")
        page.keyboard.press("Tab")
        preview.get_by_text("max: 4 is less than min, 8").wait_for()
        site.check_access(page)
    assert site.errors == []


def test_a_form_whose_upload_was_stopped_can_be_sent_again(site: Site) -> None:
    sent: list[Route] = []

    def answer(route: Route) -> None:
        sent.append(route)
        if len(sent) > 1:
            route.continue_()

    with site.page("ann") as page:
        page.clock.install()
        page.goto("/console/run")
        page.get_by_label("Command").fill("true")
        page.route("**/console/run", answer)
        button = page.get_by_role("button", name="Run", exact=True)
        button.dblclick()
        page.wait_for_timeout(200)
        assert len(sent) == 1
        sent[0].abort("aborted")  # as by the browser's button
        page.clock.fast_forward(3000)
        button.click()
        page.wait_for_url("**/jobs/j*")
    assert len(sent) == 2
    assert len(site.world.store.jobs.live()) == 1
    assert site.errors == []


def test_a_consumer_is_removed_once_nothing_needs_it(site: Site) -> None:
    site.world.admin.put("/shares/lab", json={"guarantee": 2})
    site.world.admin.put("/shares/bob", json={"parent": "lab"})
    with site.page("admin") as page:
        page.goto("/console/consumers")
        dialog = page.get_by_role("dialog")
        assert page.get_by_role("link", name="Remove lab").count() == 0
        for verb, name, told in (
            ("Reset", "bob", "It has the defaults from then on"),
            ("Remove", "lab", "It is gone from the tree"),
        ):
            page.get_by_role("link", name=f"{verb} {name}").focus()
            page.keyboard.press("Enter")
            dialog.get_by_text(told).wait_for()
            site.check_access(page)
            by_keyboard(page, verb)
            dialog.wait_for(state="hidden")
            page.locator("tr", has_text=name).wait_for(state="detached")
    assert not {"bob", "lab"} & {node.name for node in site.world.store.shares.all()}
    assert site.errors == []


@pytest.mark.parametrize("look", ["light", full("dark"), full("forced")])
def test_everybody_can_use_the_console(site: Site, look: str) -> None:
    site.world.admin.put("/shares/lab", json={"guarantee": 2})
    site.world.admin.put("/shares/ann", json={"parent": "lab"})
    site.world.store.hosts.put([HostRecord("node2", ("cpu0",), is_draining=True, reason=HOSTILE)])
    a_running_job(site, "ann", HOSTILE, "0", "1")
    site.world.bus.notify(Topic.HOSTS)
    with site.page("admin", viewport={"width": 320, "height": 640}, **LOOKS[look]) as page:
        for path in (*PAGES, "run", "consumers/lab", "new-consumer"):
            page.goto(f"/console/{path}")
            site.check_access(page)
            assert not is_too_wide(page), path
    assert site.errors == []


@pytest.mark.full
def test_the_console_works_without_scripts(site: Site) -> None:
    with site.page("admin", java_script_enabled=False) as page:
        page.goto("/console/run")
        page.get_by_label("Name").fill("digits")
        page.get_by_label("Command").fill("python train.py")
        code = {
            "name": "code.tar.gz",
            "mimeType": "application/gzip",
            "buffer": tar({"train.py": b"print()"}),
        }
        page.get_by_label("Code").set_input_files([code])  # type: ignore[list-item]
        page.get_by_role("button", name="Run").click()
        page.wait_for_url("**/jobs/*")
        page.get_by_role("link", name="Console").click()
        page.get_by_label("Choose digits").check()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Stop").click()
        page.wait_for_url("**/console/applications")
        page.get_by_role("link", name="Consumers").click()
        page.get_by_role("link", name="Add Consumer").click()
        page.get_by_label("Name").fill("lab")
        page.get_by_label("Guarantee").fill("2")
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("button", name="Save").click()
        page.locator("tr", has_text="lab,").get_by_role("cell", name="2", exact=True).wait_for()
        page.get_by_role("link", name="Hosts").click()
        page.get_by_role("link", name="Drain node1").click()
        page.get_by_role("button", name="Drain").click()
        page.get_by_text("drained by admin").wait_for()
    assert site.errors == []
