"""Logging on and tokens in a real browser."""

from pages import Site


def test_one_logs_on_with_the_keyboard_alone_and_off_again(site: Site) -> None:
    with site.page(None, "/account") as page:
        page.locator("[name=name]:focus").wait_for()
        page.keyboard.press("Tab")
        page.keyboard.type(site.world.tokens["ann"])
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="ann").wait_for()
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="ann").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Dark").focus()
        site.check_access(page)
        page.keyboard.press("Enter")
        page.locator("html[data-bs-theme=dark]").wait_for()
        page.get_by_role("button", name="ann").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Log off").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/logon")
    assert site.errors == []


def test_tokens_are_copied_and_revoked(site: Site) -> None:
    with site.page("admin", "/account", viewport={"width": 320, "height": 640}) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_label("New token for").focus()
        page.keyboard.type("laptop")
        page.keyboard.press("Enter")
        token = page.locator("#fresh").inner_text()
        site.check_access(page)
        page.get_by_role("button", name="Copy").click()
        page.get_by_text("Copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == token
        page.reload()
        page.get_by_role("link", name="Revoke laptop").focus()
        assert page.locator("#fresh").count() == 0  # no second one was made
        page.keyboard.press("Enter")
        page.get_by_role("dialog").get_by_role("button", name="Revoke").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Revoke laptop").wait_for(state="detached")
    assert site.errors == []
