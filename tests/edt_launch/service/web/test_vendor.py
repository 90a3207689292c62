"""Files of others are as their packages have them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import icons
import npm
from edt_launch.service.web import templating

VENDOR = templating.HERE / "static" / "vendor"
FILES: dict[str, dict[str, Any]] = json.loads((VENDOR / "files.json").read_text())


@pytest.mark.parametrize("name", FILES)
def test_it_is_what_is_written_down(name: str) -> None:
    known = FILES[name]
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == known["sha256"]
    assert known["version"] in name
    assert (VENDOR / known["license_file"]).read_text().strip()


@pytest.mark.parametrize("name", FILES)
def test_it_is_what_the_package_has(name: str) -> None:
    known = FILES[name]
    try:
        original = npm.file_of(known["package"], known["version"], known["path"])
    except npm.NotFetchedError as error:
        pytest.skip(f"compared with the digest alone: {error}")
    assert (VENDOR / name).read_bytes() == original


def test_the_sprite_has_the_icons_that_templates_use() -> None:
    try:
        assert icons.SPRITE.read_text() == icons.sprite(), "python tests/support/icons.py writes it"
    except npm.NotFetchedError as error:
        pytest.skip(f"not compared: {error}")


def test_there_is_nothing_else() -> None:
    known = {"files.json", "tabler-icons-LICENSE", icons.SPRITE.name, *FILES}
    for one in FILES.values():
        known |= {value for name, value in one.items() if name in ("license_file", "notice_file")}
    assert {path.name for path in Path(VENDOR).iterdir()} == known
