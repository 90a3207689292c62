"""Selected jobs in a real browser."""

from edt_launch.service.jobs.states import Wanted
from live_jobs import a_running_job
from pages import Site, by_keyboard


def test_jobs_are_selected_and_given_a_priority_by_the_keyboard_alone(site: Site) -> None:
    job = a_running_job(site, held=(("node1", ("0", "1")),), share=2.0)
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
        by_keyboard(page, "button", "Preview")
        dialog.get_by_text("another of bob goes from 2 to 0.").wait_for()
        assert dialog.get_by_label("Priority").input_value() == "2"
        by_keyboard(page, "button", "Set the priority")
        dialog.wait_for(state="hidden")
        assert site.world.store.jobs.get(job).priority == 2
        by_keyboard(page, "button", "Logs")
        assert dialog.get_by_role("link", name="digits").get_attribute("download") == f"{job}.log"
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        assert page.evaluate("document.activeElement.textContent.trim()") == "Logs"
        page.get_by_label("Selected:").select_option("stop")
        button.click()
        dialog.get_by_role("button", name="Stop").click()
        dialog.wait_for(state="hidden")
        assert page.url.endswith("/jobs")
    assert site.world.store.jobs.get(job).wanted is Wanted.STOP
    assert [error for error in site.errors if "422" not in error] == []
