"""The scripts of the pages, which no build step reformats."""

import re

from edt_launch.service.web import app, templating

SCRIPTS = sorted(app.STATIC.glob("*.js"))
TEMPLATES = sorted(file for folder in templating.TEMPLATES for file in folder.rglob("*.html"))


def test_every_script_is_loaded_by_a_page() -> None:
    pages = "".join(path.read_text() for path in TEMPLATES)
    assert set(re.findall(r"static\('([^'/]+\.js)'\)", pages)) == {script.name for script in SCRIPTS}
