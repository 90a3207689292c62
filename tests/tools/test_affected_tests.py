import subprocess
from pathlib import Path

import pytest

from affected_tests import ROOT, TABLE, is_in_full_run


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, on its main branch; no other one is looked at."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.org")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).write_text(name)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "a change")
    return git(folder, "rev-parse", "HEAD")


@pytest.mark.parametrize("start, patterns", TABLE)
def test_what_the_table_names_is_there(start: str, patterns: tuple[str, ...]) -> None:
    assert list(ROOT.glob(f"{start}*")), f"{start}: renamed? then rename it in tools/affected_tests.py, too"
    for pattern in patterns:
        assert any(is_in_full_run(file) for file in ROOT.glob(pattern)), pattern
