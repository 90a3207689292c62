"""Projects and experiments in a real browser."""

from playwright.sync_api import Page

from lab import Lab
from pages import Site

HOSTILE = '<img src=x onerror="alert(1)">'


def by_keyboard(page: Page, role: str, name: str) -> None:
    """Press Enter on something that the keyboard can reach."""
    page.get_by_role(role, name=name, exact=True).focus()  # type: ignore[arg-type]
    page.keyboard.press("Enter")


def test_what_a_dialog_changes_is_shown_at_once(site: Site) -> None:
    lab = Lab(site.world)
    with site.page("ann") as page:
        page.goto(f"/experiments/projects/{lab.project}")
        page.evaluate("window.isSame = true")
        by_keyboard(page, "link", "Members")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("User").select_option("bob")
        dialog.get_by_role("button", name="Save").click()
        page.locator("tr", has_text="bob").get_by_role("cell", name="editor").wait_for()
        assert page.evaluate("window.isSame")
    assert site.errors == []


def test_the_list_follows_runs_that_others_start(site: Site) -> None:
    lab = Lab(site.world)
    experiment = lab.experiment(lab.definition()["id"])["id"]
    lab.join("bob", "viewer")
    with site.page("bob") as page:
        for path in ("/experiments", f"/experiments/projects/{lab.project}"):
            page.goto(path)
            row = page.locator("tr", has=page.get_by_role("link", name="first", exact=True))
            before = len(lab.ann.get(f"/experiments/{experiment}/runs").json()["runs"])
            row.get_by_role("cell", name=str(before), exact=True).wait_for()
            page.get_by_text("live", exact=True).wait_for()
            lab.run(experiment)
            row.get_by_role("cell", name=str(before + 1), exact=True).wait_for()
    assert site.errors == []
