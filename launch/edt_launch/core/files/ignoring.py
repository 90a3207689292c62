"""Which files of a folder are no part of its code: those that `.edtignore` names, and what nobody wants."""

from collections.abc import Callable
from pathlib import Path, PurePath

from edt_launch.core.files.text_files import read_text

IGNORE_FILE = ".edtignore"
DEFAULTS = (
    ".git/", ".hg/", ".svn/", ".venv/", "venv/", "__pycache__/", "*.py[co]", ".ipynb_checkpoints/",
    ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", ".hypothesis/", ".tox/", ".nox/", "node_modules/",
    "*.egg-info/", ".DS_Store", ".idea/", ".vscode/", "runs/", "wandb/", "mlruns/", "lightning_logs/",
)  # fmt: skip


class IgnoreFileError(Exception):
    """A folder's `.edtignore` cannot be used."""

    def __init__(self, text: str, advice: str) -> None:
        super().__init__(f"{text}; {advice}")
        self.text, self.advice = text, advice


def ignored(folder: Path) -> Callable[[str], bool]:
    """Tells whether a path below the folder stays out; those of folders end with a slash.

    Raises:
        IgnoreFileError: the folder's `.edtignore` cannot be read, or makes no sense.
    """
    from pathspec import GitIgnoreSpec

    file = folder / IGNORE_FILE
    try:
        lines = read_text(file).splitlines() if file.exists() else []
    except OSError as error:
        raise IgnoreFileError(f"{file} cannot be read: {error.strerror}", "make it readable") from None
    except UnicodeDecodeError:
        raise IgnoreFileError(f"{file} is not in UTF-8", "save it as UTF-8") from None
    try:
        return GitIgnoreSpec.from_lines([*DEFAULTS, *lines]).match_file
    except ValueError as error:
        raise IgnoreFileError(f"{file}: {error}", "its syntax is that of .gitignore") from None


def left_out_by_default(path: str) -> str | None:
    """The part of a path that stays out of every folder's code, such as "runs/"; None if there is none."""
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(DEFAULTS)
    *folders, file = PurePath(path).parts
    names = (*(f"{part}/" for part in folders), file)
    return next((name for name in names if spec.match_file(name)), None)
