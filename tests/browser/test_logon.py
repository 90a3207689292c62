import pytest

from pages import LOOKS, Site, is_too_wide
from tiers import full


def test_one_logs_on_with_the_keyboard_alone_and_off_again(site: Site) -> None:
    with site.page() as page:
        page.goto("/account")
        page.locator("[name=name]:focus").wait_for()
        page.keyboard.press("Tab")
        page.keyboard.type(site.world.tokens["ann"])
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="ann").wait_for()
        page.get_by_role("button", name="ann").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Dark").focus()
        site.check_access(page)
        page.keyboard.press("Enter")
        page.locator("html[data-theme=dark]").wait_for()
        page.get_by_role("button", name="ann").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Log off").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/logon")
    assert site.errors == []


def test_one_logs_on_without_scripts(site: Site) -> None:
    with site.page("ann", java_script_enabled=False) as page:
        page.goto("/account")
        assert page.get_by_role("heading", name="ann").is_visible()


def test_a_link_logs_on(site: Site) -> None:
    path = site.world.ann.post("/logon-links").json()["path"]
    with site.page() as page:
        page.goto(path)
        page.get_by_role("button", name="Log on").click()
        page.wait_for_url("**/pool")
    assert site.errors == []


@pytest.mark.parametrize("look", ["light", full("dark"), full("forced")])
def test_everybody_can_use_the_pages(site: Site, look: str) -> None:
    with site.page(**LOOKS[look]) as page:
        page.goto("/logon")
        site.check_access(page)
    with site.page("ann", viewport={"width": 320, "height": 640}, **LOOKS[look]) as page:
        for path in ("/account", "/account/password", "/account/nothing"):
            page.goto(path)
            site.check_access(page)
            assert not is_too_wide(page), path
    with site.page("admin", viewport={"width": 320, "height": 640}, **LOOKS[look]) as page:
        for path in ("/users", "/users/bob/password", "/users/bob/remove", "/users/changes"):
            page.goto(path)
            site.check_access(page)
            assert not is_too_wide(page), path


def test_a_token_is_made_and_revoked_with_the_keyboard_alone(site: Site) -> None:
    with site.page("admin", viewport={"width": 320, "height": 640}) as page:
        page.goto("/account")
        page.get_by_label("A new token for").focus()
        page.keyboard.type("laptop")
        page.keyboard.press("Enter")
        page.locator("#fresh").wait_for()
        site.check_access(page)
        page.get_by_role("link", name="Revoke laptop").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Revoke").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Revoke laptop").wait_for(state="detached")
        page.goto("/users")
        site.check_access(page)
        assert not is_too_wide(page)
    assert site.errors == []


def test_a_user_is_removed_and_the_token_of_a_new_one_stays_meanwhile(site: Site) -> None:
    with site.page("admin") as page:
        page.goto("/users")
        page.get_by_label("Name").fill("zed")
        page.get_by_role("button", name="Add").click()
        token = page.locator("#fresh").inner_text()
        page.get_by_role("link", name="Remove bob").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        page.get_by_text("Done: Remove bob").wait_for()
        page.get_by_role("rowheader", name="bob").wait_for(state="detached")
        assert page.locator("#fresh").inner_text() == token
    assert site.errors == []


def test_a_page_of_another_site_changes_nothing(site: Site) -> None:
    with site.page("ann") as page:
        page.route(
            "http://evil.test/",
            lambda route: route.fulfill(
                content_type="text/html",
                body=f'<form method="post" action="{site.url}/logoff"><button>Win</button></form>',
            ),
        )
        page.goto("http://evil.test/")
        page.get_by_role("button").click()
        page.wait_for_url("**/logoff")
        page.goto("/account")
        assert page.get_by_role("heading", name="ann").is_visible()
