"""A job's logs, live, in a real browser."""

from live_jobs import HOSTILE, a_running_job
from pages import Site


def test_a_log_is_followed_and_its_lines_have_addresses(site: Site) -> None:
    job = a_running_job(site)
    log = site.world.files(job).launcher_log
    log.write_bytes(
        "".join(f"[0] line {number} \u00e4\n" for number in range(2000)).encode() + b"[0] \xff half"
    )
    with site.page("ann", f"/jobs/{job}?tab=logs") as page:
        shown = page.locator("#log")
        with log.open("a") as file:
            file.write(" a line\n")
            file.write("".join(f"[0] after it, {number}\n" for number in range(2000)))
            file.write(f"[0] {HOSTILE} the last\n")
        shown.get_by_text("the last").wait_for()
        assert "<img src=x" in shown.inner_text()
        assert "\x1b" not in shown.inner_text()
        assert shown.get_by_text("line 1999").count() == 1
        assert shown.evaluate("one => one.scrollHeight - one.scrollTop - one.clientHeight < 40")
        shown.evaluate("one => { one.scrollTop = 0 }")
        with log.open("a") as file:
            file.write("[0] one more\n")
        page.get_by_text("1 new line below").wait_for()
        assert shown.evaluate("one => one.scrollTop") == 0
        row = shown.locator("span:has(a.place)").filter(has_text="half a line")
        page.goto(row.locator("a").get_attribute("href") or "")
        assert page.locator("#line").inner_text() == "[0] \ufffd half a line\n"
        assert page.locator("#line").is_visible()
        page.get_by_role("link", name="To the end").click()
        shown.get_by_text("after it, 1999").wait_for()
    assert site.errors == []


def test_a_log_goes_on_after_the_service_was_started_again_and_when_it_is_seen_again(site: Site) -> None:
    job = a_running_job(site)
    log = site.world.files(job).launcher_log
    log.write_text("[0] first\n[0] sec")
    with site.page("ann", f"/jobs/{job}?tab=logs") as page:
        shown = page.locator("#log")
        page.get_by_text("live", exact=True).wait_for()
        site.stop()
        page.get_by_text("it is tried again").wait_for()
        with log.open("a") as file:
            file.write("ond\n")
        site.start()
        shown.get_by_text("second").wait_for()
        page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        with page.expect_event("requestfailed", lambda request: "/logs?" in request.url):
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        with log.open("a") as file:
            file.write("[0] third\n")
        page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        shown.get_by_text("third").wait_for()
        assert shown.inner_text().split() == ["[0]", "first", "[0]", "second", "[0]", "third"]
