import subprocess
from pathlib import Path

import pytest

from affected_tests import ROOT, TABLE, is_in_full_run, select


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


def test_files_are_selected_once_and_only_if_they_have_tests_for_the_full_run(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "system"
    folder.mkdir(parents=True)
    (folder / "test_exact.py").write_text("@pytest.mark.full\n")
    (folder / "test_resizes.py").write_text("@pytest.mark.parametrize('n', [full(1), 2])\n")
    (folder / "test_faults.py").write_text("def test_it(): ...\n")
    changed = ["README.md", "edt_hvd/elastic.py", "native/sum.cpp", "tests/system/test_removed.py"]
    assert select(changed, tmp_path) == {
        "tests/system/test_exact.py": "edt_hvd/elastic.py",
        "tests/system/test_resizes.py": "edt_hvd/elastic.py",
    }
