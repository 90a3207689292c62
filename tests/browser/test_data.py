"""Data sets in a real browser."""

from playwright.sync_api import expect

from pages import Site
from world import tar


def test_an_archive_is_uploaded_looked_at_and_deleted(site: Site) -> None:
    archive = {"name": "digits.zip.tar", "mimeType": "application/x-tar"}
    with site.page("ann", "/data") as page:
        page.get_by_role("link", name="Upload", exact=True).click()
        expect(page.get_by_role("button", name="Upload")).to_be_disabled()
        page.get_by_label("Name of the data set").fill("digits")
        chosen = [{**archive, "buffer": tar({"train/a.csv": b"1,2"}, "w")}]
        page.get_by_label("An archive").set_input_files(chosen)  # type: ignore[arg-type]
        page.locator(".file").get_by_text("digits.zip.tar").wait_for()
        (site.world.settings.data_folder / "users/ann/digits").mkdir(parents=True)
        page.get_by_role("button", name="Upload").click()
        page.get_by_text("there is a data set ann/digits already").wait_for()
        site.check_access(page)
        page.get_by_label("Replace").check()
        page.get_by_role("button", name="Upload").click()
        page.get_by_role("link", name="train").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="a.csv", exact=True).click()
        assert download.value.path().read_bytes() == b"1,2"
        page.goto("/data")
        page.get_by_role("link", name="Delete digits of ann").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.get_by_text("No data sets yet").wait_for()
    assert not any("409" not in error for error in site.errors)
