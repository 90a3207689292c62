import hashlib
import json
from pathlib import Path

import pytest

from edt_launch.service.files.checkpoints import Wholeness, quick_look, thorough_look

CONTENT = b"weights"


def checkpoint(folder: Path, content: bytes = CONTENT) -> Path:
    (folder / "state.pt").write_bytes(content)
    about = {"bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps({"files": {"state.pt": about}}))
    return folder


def test_a_whole_one(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    assert (quick_look(found), thorough_look(found)) == (Wholeness.COMPLETE, Wholeness.WHOLE)


def test_another_size_is_seen_at_once_and_other_content_when_it_is_read(tmp_path: Path) -> None:
    assert quick_look(checkpoint(tmp_path, CONTENT[:-1])) is Wholeness.DAMAGED
    found = checkpoint(tmp_path, CONTENT[::-1])
    assert (quick_look(found), thorough_look(found)) == (Wholeness.COMPLETE, Wholeness.DAMAGED)
    (found / "state.pt").unlink()
    assert quick_look(found) is Wholeness.DAMAGED


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"files": {}}', '{"files": {"../x": {"bytes": 1, "sha256": ""}}}', "[" * 9999],
)
def test_whatever_is_in_place_of_a_manifest(tmp_path: Path, manifest: str) -> None:
    found = checkpoint(tmp_path)
    (found / "manifest.json").write_text(manifest)
    assert quick_look(found) is Wholeness.UNKNOWN
    (found / "manifest.json").unlink()
    assert thorough_look(found) is Wholeness.UNKNOWN
