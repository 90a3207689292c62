"""Jobs and a job, live, in a real browser."""

import time

import pytest
from sqlalchemy.exc import OperationalError

from edt_launch.service.bus import Topic
from edt_launch.service.database.records import JobRecord
from edt_launch.service.states import State, Wanted
from live_jobs import HOSTILE, a_running_job, record, reported
from pages import LOOKS, Site, is_too_wide
from tiers import full
from world import NOW


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
        dialog.get_by_text("Its 2 devices are free then.").wait_for()
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


def test_chosen_jobs_are_paused_in_a_dialog_by_the_keyboard_alone(site: Site) -> None:
    first, second = a_running_job(site), a_running_job(site)
    with site.page("ann") as page:
        page.goto("/jobs?sort=name")
        for job in (first, second):
            page.locator(f"#chosen-{job}").focus()
            page.keyboard.press("Space")
        site.world.submit(site.world.bob, name="another")  # what was chosen stays so when the list changes
        page.get_by_role("link", name="another").wait_for()
        page.get_by_label("With the chosen ones").select_option("pause")
        page.get_by_role("button", name="Go on").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("heading", name="Pause 2 jobs?").wait_for()
        dialog.get_by_text("No other job would change now.").wait_for()
        site.check_access(page)
        dialog.get_by_role("button", name="Pause").focus()
        page.keyboard.press("Enter")
        dialog.wait_for(state="hidden")
    assert {site.world.store.jobs.get(job).wanted for job in (first, second)} == {Wanted.PAUSE}
    assert site.errors == []


def test_a_dialog_says_what_is_wrong_and_is_left_again_by_the_keyboard_alone(site: Site) -> None:
    job = a_running_job(site)
    focused = "document.activeElement.textContent"
    with site.page("ann") as page:
        page.goto("/jobs")
        page.get_by_role("button", name="Go on").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("no job is chosen").wait_for()
        dialog.get_by_role("link", name="Close").focus()
        page.keyboard.press("Enter")
        dialog.wait_for(state="hidden")
        page.goto(f"/jobs/{job}")
        page.get_by_role("link", name="Stop").focus()
        page.keyboard.press("Enter")
        dialog.get_by_role("heading", name="Stop digits?").wait_for()
        assert page.evaluate(focused) == "Stop digits?"
        page.keyboard.press("Enter")  # does nothing: no button has the focus
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Change").click()
        dialog.get_by_label("Workers at most").fill("3")
        dialog.get_by_role("button", name="Only say what would change").click()
        page.locator("[role=status]:focus").get_by_text("digits of ann").wait_for()
        dialog.get_by_label("Workers at most").fill("none")
        dialog.get_by_role("button", name="Change", exact=True).click()
        page.locator("[role=alert]:focus").wait_for()
    assert site.world.store.jobs.get(job).wanted is Wanted.RUN
    assert [error for error in site.errors if "422" not in error] == []


def test_what_is_clicked_while_the_service_is_away_is_told(site: Site) -> None:
    job = a_running_job(site)
    with site.page("ann") as page:
        page.goto(f"/jobs/{job}")
        page.get_by_role("link", name="Pause").click()
        page.get_by_role("dialog").get_by_role("heading").wait_for()
        site.server.stop()
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        page.get_by_role("dialog").get_by_text("The service does not answer").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Stop").click()
        page.get_by_text("The service does not answer").wait_for()
        assert page.get_by_role("heading", name="digits").is_visible()


def test_times_go_on(site: Site) -> None:
    job = a_running_job(site)
    with site.page("ann") as page:
        page.clock.install(time=NOW)
        page.goto(f"/jobs/{job}")
        time = page.locator("dd time").first
        assert time.inner_text() == "now"
        page.clock.run_for(70_000)
        assert time.inner_text() == "1 min 10 s ago"


def test_a_conflict_is_told_in_the_dialog(site: Site) -> None:
    job = a_running_job(site)
    with site.page("ann") as page:
        page.goto(f"/jobs/{job}")
        page.get_by_role("link", name="Pause").click()
        dialog = page.get_by_role("dialog")
        button = dialog.get_by_role("button", name="Pause")
        button.wait_for()
        site.world.go(job, State.STOPPING, State.STOPPED)
        button.click()
        dialog.get_by_text(f"{job} is stopped").wait_for()
    assert [error for error in site.errors if "409" not in error] == []


def test_everything_works_without_scripts(site: Site) -> None:
    job = a_running_job(site)
    site.world.files(job).launcher_log.write_text("[0] hello\n")
    with site.page("ann", java_script_enabled=False) as page:
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_role("link", name="digits").click()
        page.get_by_role("link", name="Logs").click()
        assert page.locator("#log").inner_text() == "[0] hello\n"
        page.get_by_role("link", name="Pause").click()
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("link", name="Resume").wait_for()
        page.get_by_role("link", name="Change").click()
        page.get_by_label("Workers at most").fill("3")
        page.get_by_role("button", name="Change", exact=True).click()
        page.wait_for_url(f"**/jobs/{job}")
        assert site.world.store.jobs.get(job).wanted is Wanted.PAUSE
        page.get_by_role("link", name="Stop").click()
        page.get_by_role("button", name="Stop").click()
        page.wait_for_url(f"**/jobs/{job}")
    changed = site.world.store.jobs.get(job)
    assert (changed.wanted, changed.max) == (Wanted.STOP, 3)


def test_jobs_are_found_sorted_and_cloned_by_the_keyboard_alone(site: Site) -> None:
    job = a_running_job(site)
    site.world.submit(site.world.ann, name="aaa")
    site.world.submit(site.world.ann, name="zzz")

    def names() -> list[str]:
        return page.locator("tr[data-job] th a").all_inner_texts()

    with site.page("ann") as page:
        page.goto("/jobs")
        for arrow, order in (
            ("ascending", ["aaa", "digits", "zzz"]),
            ("descending", ["zzz", "digits", "aaa"]),
        ):
            page.get_by_role("columnheader").get_by_role("link", name="Job").focus()
            page.keyboard.press("Enter")
            page.locator(f"th[aria-sort={arrow}]").wait_for()
            assert names() == order
        page.get_by_label("Name or id").focus()
        page.keyboard.type("dig")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=dig*")
        assert names() == ["digits"]
        page.get_by_role("link", name="digits").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Clone").focus()
        page.keyboard.press("Enter")
        page.get_by_label("Name", exact=True).focus()
        page.keyboard.press("Control+A")
        page.keyboard.type("again")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="again").wait_for()
        page.get_by_label("Find a job").focus()
        page.keyboard.type(job)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="digits").wait_for()
    assert site.errors == []


def test_fields_that_change_look_like_those_that_the_page_begins_with(site: Site) -> None:
    for number, seconds in enumerate((0.4, 1, 59.6, 61, 3599, 3600, 7325, 86399.7, 90061, 1e7)):
        share, loss = 0.04 + number / 3, 10.0 ** (number - 5) / 7
        job = a_running_job(site, share=share, loss=loss)
        record(site, job, step=0, total_steps=1000, throughput=1000 / seconds, target=number)
    cells = "[...page.querySelectorAll('[data-field]')].map(one => `${one.dataset.field} ${one.textContent}`)"
    with site.page("ann") as page:
        page.goto("/jobs")
        page.get_by_text("live", exact=True).wait_for()
        patched = page.evaluate(f"(page => {cells})(document)")
        begun = page.evaluate(
            "async () => { const page = new DOMParser().parseFromString("
            f"await (await fetch('/jobs')).text(), 'text/html'); return {cells}; }}"
        )
        assert patched == begun
        assert len(patched) == 40
    assert site.errors == []


def test_a_session_that_was_ended_elsewhere_is_told(site: Site) -> None:
    a_running_job(site)
    with site.page("ann") as page:
        page.goto("/jobs")
        page.get_by_text("live", exact=True).wait_for()
        with site.page("ann") as other:
            other.goto("/account")
            other.get_by_role("button", name="End the others").click()
            page.get_by_role("link", name="log on again").wait_for()
        page.get_by_role("button", name="Go on").click()
        page.wait_for_url(lambda url: url.endswith("/logon?next=%2Fjobs"))


def test_a_new_token_is_copied_and_not_made_again_by_a_reload(site: Site) -> None:
    with site.page("ann") as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto("/account")
        page.get_by_label("A new token for").fill("laptop")
        page.get_by_role("button", name="Make a token").click()
        token = page.locator("#fresh").inner_text()
        page.get_by_role("button", name="Copy").click()
        page.get_by_text("Copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == token
        page.reload()
        page.get_by_role("cell", name="laptop", exact=True).wait_for()
        assert page.locator("#fresh").count() == 0
    assert [token.name for token in site.world.store.accounts.tokens("ann")].count("laptop") == 1
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


@pytest.mark.full
@pytest.mark.parametrize("path", ["/jobs", "/pool", "/jobs/{job}?tab=logs"])
def test_pages_heal_when_the_service_is_started_again(site: Site, path: str) -> None:
    job = a_running_job(site)
    with site.page("ann") as page:
        page.goto(path.format(job=job))
        page.get_by_text("live", exact=True).wait_for()
        page.evaluate("window.isSame = true")
        site.server.stop()
        page.get_by_text("no connection since").wait_for()
        assert page.get_by_role("heading").first.is_visible()
        site.world.go(job, State.STOPPING)
        site.server.start()
        page.get_by_text("live", exact=True).wait_for()
        if path != "/pool":
            page.get_by_text("stopping", exact=True).first.wait_for()
        assert page.evaluate("window.isSame")


@pytest.mark.full
@pytest.mark.parametrize("look", LOOKS)
def test_everybody_can_use_pages_that_say_what_is_wrong(
    site: Site, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_running_job(site)
    with site.page("bob", viewport={"width": 320, "height": 640}, **LOOKS[look]) as page:
        for path, text in {
            f"/jobs/{job}?tab=logs": "is for ann and administrators",
            f"/jobs/{job}": "are for ann and administrators",
            "/users": "bob is no administrator",
            "/jobs/jbbbbbbbb": "there is no job",
            "/jobs?after=x": "after",
        }.items():
            page.goto(path)
            page.get_by_text(text).first.wait_for()
            site.check_access(page)
            assert not is_too_wide(page), path

        def away(*_: object) -> None:
            raise OperationalError("", {}, Exception("gone"))

        monkeypatch.setattr(site.world.store.accounts, "bearer", away)
        page.goto("/jobs")
        page.get_by_text("The page tries again every 5 seconds").wait_for()
        site.check_access(page)
        monkeypatch.undo()
        page.get_by_role("link", name="digits").wait_for()


@pytest.mark.parametrize("look", ["light", full("dark"), full("forced")])
def test_everybody_can_use_the_pages(site: Site, look: str) -> None:
    job = a_running_job(site, share=1.5)
    site.world.submit(site.world.ann, name=HOSTILE.replace("\x1b", ""))
    folder = site.world.files(job)
    folder.launcher_log.write_text("[0] hello\n")
    (folder.output.model / "a model.pt").write_bytes(b"weights")
    resumed = (
        '{"event": "resumed", "time": 9.0, "generation": 2, "from": 2, "to": 4, "pause": 1.5, '
        '"phases": {"drain": 0.5}}'
    )
    folder.output.events.write_text(
        "".join(reported(step, loss=1 / step) for step in range(1, 9)) + resumed + "\n"
    )
    tabs = [f"/jobs/{job}?tab={tab}" for tab in ("monitor", "size", "events", "results", "definition")]
    logs = [f"/jobs/{job}?tab=logs", f"/jobs/{job}?tab=logs&text=hello", f"/jobs/{job}?tab=logs&at=0"]
    with site.page("ann", viewport={"width": 320, "height": 640}, **LOOKS[look]) as page:
        for path in ("/jobs", "/jobs?text=nothing", f"/jobs/{job}/set", *tabs, *logs):
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
