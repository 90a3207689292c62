"""Pages in a browser that runs no scripts."""

from edt_launch.service.jobs.states import Wanted
from live_jobs import a_running_job
from pages import Site


def test_a_job_is_read_paused_changed_and_stopped(site: Site) -> None:
    job = a_running_job(site)
    site.world.files(job).launcher_log.write_text("[0] hello\n")
    with site.page("admin", "/jobs", java_script_enabled=False) as page:
        page.get_by_role("link", name="digits").click()
        page.get_by_role("link", name="Logs").click()
        assert page.locator("#log").inner_text() == "[0] hello\n"
        page.get_by_role("link", name="Pause").click()
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("link", name="Resume").wait_for()
        page.get_by_role("link", name="Change").click()
        page.get_by_label("Maximum workers").fill("3")
        page.get_by_role("button", name="Change", exact=True).click()
        page.wait_for_url(f"**/jobs/{job}")
        page.get_by_role("link", name="Stop").click()
        page.get_by_role("button", name="Stop").click()
        page.wait_for_url(f"**/jobs/{job}")
    changed = site.world.store.jobs.get(job)
    assert (changed.wanted, changed.max) == (Wanted.STOP, 3)
    assert site.errors == []
