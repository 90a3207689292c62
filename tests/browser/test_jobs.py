"""Jobs and a job, live, in a real browser."""

from edt_launch.service.bus import Topic
from edt_launch.service.jobs.states import State
from live_jobs import a_running_job, record
from pages import Site


def test_changes_are_seen_without_a_reload(site: Site) -> None:
    job = a_running_job(site)
    with site.page("ann", "/jobs") as page:
        page.get_by_text("live", exact=True).wait_for()
        row = page.locator(f"tr[data-job={job}]")
        assert row.locator("[data-field=size]").inner_text() == "2"
        page.evaluate("window.isSame = true")
        page.get_by_label("Name, comment or id;").fill("half a wo")
        record(site, job, target=4, step=55, size=2)
        row.get_by_text("2→4").wait_for()
        assert row.locator("[data-field=progress]").inner_text() == "55%"
        assert row.locator("[data-field=eta]").inner_text() == "45s"
        site.world.submit(site.world.bob, name="another")
        page.get_by_role("link", name="another").wait_for()
        site.world.go(job, State.SUCCEEDED)
        site.world.bus.notify(Topic.JOBS)
        row.get_by_text("succeeded").wait_for()
        assert page.evaluate("window.isSame")
        assert page.get_by_label("Name, comment or id;").input_value() == "half a wo"
    assert site.errors == []


def test_fields_that_change_look_like_those_that_the_page_begins_with(site: Site) -> None:
    for number, seconds in enumerate((0.4, 1, 59.6, 61, 3599, 3600, 7325, 86399.7, 90061, 1e7)):
        share, loss = 0.04 + number / 3, 10.0 ** (number - 5) / 7
        job = a_running_job(site, share=share, loss=loss)
        record(site, job, step=0, total_steps=1000, throughput=1000 / seconds, target=number)
    cells = "[...page.querySelectorAll('[data-field]')].map(one => `${one.dataset.field} ${one.textContent}`)"
    with site.page("ann", "/jobs") as page:
        page.get_by_text("live", exact=True).wait_for()
        patched = page.evaluate(f"(page => {cells})(document)")
        begun = page.evaluate(
            "async () => { const page = new DOMParser().parseFromString("
            f"await (await fetch('/jobs')).text(), 'text/html'); return {cells}; }}"
        )
        assert patched == begun
        assert len(patched) == 30
    assert site.errors == []


def test_a_session_that_was_ended_elsewhere_is_told(site: Site) -> None:
    a_running_job(site)
    with site.page("ann", "/jobs") as page:
        page.get_by_text("live", exact=True).wait_for()
        with site.page("ann") as other:
            other.goto("/account")
            other.get_by_role("link", name="Log off all others").click()
            other.get_by_role("dialog").get_by_role("button", name="Log off").click()
            page.get_by_role("link", name="log on again").wait_for()
        page.locator("[name=job]").first.check()
        page.get_by_role("button", name="Apply").click()
        page.wait_for_url(lambda url: url.endswith("/logon?next=%2Fjobs"))


def test_a_page_heals_when_the_service_is_started_again(site: Site) -> None:
    job = a_running_job(site)
    with site.page("ann", "/jobs") as page, site.page("ann", f"/jobs/{job}") as asks:
        page.get_by_text("live", exact=True).wait_for()
        page.evaluate("window.isSame = true")
        asks.get_by_role("link", name="Pause").click()
        asks.get_by_role("dialog").get_by_role("heading").wait_for()
        site.stop()
        asks.get_by_role("dialog").get_by_role("button", name="Pause").click()
        asks.get_by_role("dialog").get_by_text("The service does not answer").wait_for()
        asks.keyboard.press("Escape")
        asks.get_by_role("link", name="Stop").click()
        asks.get_by_text("The service does not answer").wait_for()
        assert asks.get_by_role("heading", name="digits").is_visible()
        page.get_by_text("no connection since").wait_for()
        assert page.get_by_role("link", name="digits").is_visible()
        site.world.go(job, State.STOPPING)
        site.world.bus.notify(Topic.JOBS)
        site.start()
        page.get_by_text("live", exact=True).wait_for()
        page.locator(f"tr[data-job={job}]").get_by_text("stopping").wait_for()
        assert page.evaluate("window.isSame")
