"""Selected jobs, and the console, in a real browser."""

from playwright.sync_api import Page

from edt_launch.service.jobs.states import State, Wanted
from pages import Site


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


def test_jobs_are_selected_and_given_a_priority_by_the_keyboard_alone(site: Site) -> None:
    job = a_running_job(site, "ann", "digits", "0", "1")
    with site.page("ann", "/jobs") as page:
        button = page.get_by_role("button", name="Apply")
        page.get_by_label("Selected:").select_option("priority")
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
        by_keyboard(page, "Preview")
        dialog.get_by_text("another of bob goes from 2 to 0.").wait_for()
        assert dialog.get_by_label("Priority").input_value() == "2"
        by_keyboard(page, "Set the priority")
        dialog.wait_for(state="hidden")
        assert site.world.store.jobs.get(job).priority == 2
        page.get_by_role("button", name="Logs").click()
        assert dialog.get_by_role("link", name="digits").get_attribute("download") == f"{job}.log"
        page.keyboard.press("Escape")
        page.get_by_label("Selected:").select_option("stop")
        button.click()
        dialog.get_by_role("button", name="Stop").click()
        dialog.wait_for(state="hidden")
        assert page.url.endswith("/jobs")
    assert site.world.store.jobs.get(job).wanted is Wanted.STOP
    assert [error for error in site.errors if "422" not in error] == []


def test_a_share_is_changed_after_a_look_at_who_gains_and_loses(site: Site) -> None:
    a_running_job(site, "ann", "first", "0", "1")
    a_running_job(site, "bob", "second", "2", "3")
    with site.page("admin", "/shares") as page:
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
