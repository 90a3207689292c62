"""Pages in a browser that runs no scripts."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from edt_launch.service.jobs.states import Wanted
from lab import Lab
from live_jobs import a_running_job
from pages import Site
from world import tar

CODE: Any = {
    "name": "code.tar.gz",
    "mimeType": "application/gzip",
    "buffer": tar({"train.py": b"print()"}),
}


@pytest.fixture
def page(site: Site) -> Iterator[Page]:
    with site.page("admin", java_script_enabled=False) as page:
        yield page
    assert [error for error in site.errors if "422" not in error] == []


def test_a_job_is_read_paused_changed_and_stopped(site: Site, page: Page) -> None:
    job = a_running_job(site)
    site.world.files(job).launcher_log.write_text("[0] hello\n")
    page.goto("/jobs")
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


def test_forms_send_files_and_say_what_is_wrong_with_them(site: Site, page: Page) -> None:
    page.goto(f"/experiments/{Lab(site.world).experiment()['id']}/add")
    page.get_by_label("Name").fill("net")
    page.get_by_label("Execution command").fill("python train.py")
    page.get_by_label("Training source code").set_input_files([{**CODE, "buffer": b"no archive"}])
    assert not page.get_by_role("button", name="Take the file away").is_visible()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("alert").wait_for()
    page.goto("/experiments/new-search")
    page.get_by_label("Name", exact=True).fill("find")
    page.get_by_label("Command").fill("python train.py --rate {rate}")
    page.get_by_label("Code").set_input_files([CODE])
    page.get_by_label("Parameter 1", exact=True).fill("rate")
    page.get_by_label("Values of parameter 1").fill("0.1, 0.01")
    page.get_by_label("Metric").fill("loss")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="find").wait_for()
    page.get_by_role("link", name="Input").click()
    page.get_by_text("0.1, 0.01").wait_for()
