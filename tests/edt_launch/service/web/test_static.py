"""The scripts of the pages, which no build step reformats."""

import re
from pathlib import Path

import pytest

from edt_launch.service.web import app, templating

SCRIPTS = sorted(app.STATIC.glob("*.js"))
TEMPLATES = sorted((templating.HERE / "templates").rglob("*.html"))
LONGEST = 120
"""Characters of a line."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_lines_can_be_read(script: Path) -> None:
    lines = script.read_text().splitlines()
    assert [(number, len(line)) for number, line in enumerate(lines, 1) if len(line) > LONGEST] == []


def test_every_script_is_loaded_by_a_page() -> None:
    pages = "".join(path.read_text() for path in TEMPLATES)
    assert set(re.findall(r"static\('([^'/]+\.js)'\)", pages)) == {script.name for script in SCRIPTS}
