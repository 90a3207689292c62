"""Jobs and a job, live, in a real browser."""

import time

import pytest

from edt_launch.service.bus import Topic
from edt_launch.service.database.records import JobRecord
from edt_launch.service.states import State, Wanted
from pages import LOOKS, Site, is_too_wide
from tiers import full

HOSTILE = '<img src=x onerror="alert(1)">\u202e\x1b[31m'


def a_running_job(site: Site, **fields: object) -> str:
    job: str = site.world.submit(site.world.ann, name="digits", max=4)["id"]
    site.world.go(job, State.STARTING, State.RUNNING)
    record(site, job, size=2, target=2, step=10, total_steps=100, throughput=1.0, **fields)
    return job


def record(site: Site, job: str, **observed: object) -> None:
    site.world.store.jobs.record({job: observed})
    site.world.bus.notify(Topic.JOBS)


def test_changes_are_seen_without_a_reload(site: Site) -> None:
    job = a_running_job(site)
    with site.page("ann") as page:
        page.goto("/jobs")
        page.get_by_text("live", exact=True).wait_for()
        row = page.locator(f"tr[data-job={job}]")
        assert row.locator("[data-field=size]").inner_text() == "2"
        page.evaluate("window.isSame = true")
        page.get_by_label("Name or id").fill("half a wo")
        record(site, job, target=4, step=55, size=2)
        row.get_by_text("2→4").wait_for()
        assert row.locator("[data-field=progress]").inner_text() == "55%"
        assert row.locator("[data-field=eta]").inner_text() == "45 s"
        site.world.submit(site.world.bob, name="another")
        page.get_by_role("link", name="another").wait_for()
        site.world.go(job, State.SUCCEEDED)
        site.world.bus.notify(Topic.JOBS)
        row.get_by_text("succeeded").wait_for()
        assert page.evaluate("window.isSame")
        assert page.get_by_label("Name or id").input_value() == "half a wo"
    assert site.errors == []


def test_a_job_is_stopped_in_a_dialog_and_by_the_keyboard_alone(site: Site) -> None:
    job = a_running_job(site)
    with site.page("ann") as page:
        page.goto(f"/jobs/{job}")
        page.get_by_role("link", name="Stop").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("Its 2 devices go to other jobs.").wait_for()
        site.check_access(page)
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        assert page.get_by_role("link", name="Stop").evaluate("one => one === document.activeElement")
        page.keyboard.press("Enter")
        dialog.get_by_role("link", name="Cancel").click()
        dialog.wait_for(state="hidden")
        page.get_by_role("link", name="Stop").click()
        dialog.get_by_role("button", name="Stop").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Stop").wait_for(state="detached")
    assert site.world.store.jobs.get(job).wanted is Wanted.STOP
    assert site.errors == []


def test_everything_works_without_scripts(site: Site) -> None:
    job = a_running_job(site)
    site.world.files(job).launcher_log.write_text("[0] hello\n")
    with site.page("ann", java_script_enabled=False) as page:
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_role("link", name="digits").click()
        assert page.locator("#log").inner_text() == "[0] hello\n"
        page.get_by_role("link", name="Pause").click()
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("link", name="Resume").wait_for()
        page.get_by_role("link", name="Change").click()
        page.get_by_label("Workers at most").fill("3")
        page.get_by_role("button", name="Change").click()
        page.wait_for_url(f"**/jobs/{job}")
    changed = site.world.store.jobs.get(job)
    assert (changed.wanted, changed.max) == (Wanted.PAUSE, 3)


def test_a_log_is_followed(site: Site) -> None:
    job = a_running_job(site)
    log = site.world.files(job).launcher_log
    log.write_text("".join(f"[0] line {number}\n" for number in range(100)))
    with site.page("ann") as page:
        page.goto(f"/jobs/{job}")
        shown = page.locator("#log")
        with log.open("a") as file:
            file.write(f"[0] {HOSTILE} the last\n")
        shown.get_by_text("the last").wait_for()
        assert "<img src=x" in shown.inner_text()
        assert "\x1b" not in shown.inner_text()
        at_end = "one => one.scrollHeight - one.scrollTop - one.clientHeight < 40"
        assert shown.evaluate(at_end)
        shown.evaluate("one => { one.scrollTop = 0 }")
        with log.open("a") as file:
            file.write("[0] one more\n")
        page.get_by_text("1 new lines below").wait_for()
        assert shown.evaluate("one => one.scrollTop") == 0
    assert site.errors == []


def test_a_page_says_when_the_service_is_away(site: Site) -> None:
    a_running_job(site)
    with site.page("ann") as page:
        page.goto("/jobs")
        page.get_by_text("live", exact=True).wait_for()
        site.world.context.stop.set()  # ends the streams
        page.get_by_text("no connection since").wait_for()
        assert page.get_by_role("link", name="digits").is_visible()
        site.world.context.stop.clear()
        page.get_by_text("live", exact=True).wait_for()


@pytest.mark.parametrize("look", ["light", full("dark"), full("forced")])
def test_everybody_can_use_the_pages(site: Site, look: str) -> None:
    job = a_running_job(site, share=1.5)
    site.world.submit(site.world.ann, name=HOSTILE.replace("\x1b", ""))
    site.world.files(job).launcher_log.write_text("[0] hello\n")
    site.world.files(job).output.events.write_text(
        '{"event": "world", "time": 1.0, "generation": 1, "size": 2}\n'
    )
    with site.page("ann", viewport={"width": 320, "height": 640}, **LOOKS[look]) as page:
        for path in ("/jobs", "/jobs?text=nothing", f"/jobs/{job}", f"/jobs/{job}/set"):
            page.goto(path)
            site.check_access(page)
            assert not is_too_wide(page), path
    assert site.errors == []


@pytest.mark.full
def test_a_thousand_jobs_are_listed_at_once(site: Site) -> None:
    for number in range(1000):
        name = "".join("abcdefghij"[int(digit)] for digit in f"{number:08}")
        site.world.store.jobs.add(JobRecord(f"j{name}", "ann", ("true",), 1, 4, 1.0, name=f"job {number}"))
    with site.page("ann") as page:
        begin = time.perf_counter()
        page.goto("/jobs")
        print(f"1,000 jobs: {time.perf_counter() - begin:.3f} s until the page is loaded")
        assert page.locator("tr[data-job]").count() == 100
    assert site.errors == []
