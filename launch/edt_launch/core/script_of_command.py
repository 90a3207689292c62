"""Which script a command runs."""

from collections.abc import Sequence
from pathlib import Path

WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Python's options whose value is a word of its own."""


def script_of(command: Sequence[str]) -> str | None:
    """The Python script that a command such as `python -u train.py` runs; None if it runs something else."""
    words = iter(command[1:] if Path(command[0]).name.startswith("python") else command)
    for word in words:
        if word in WITH_VALUE:
            next(words, None)
        elif not word.startswith("-") or word in ("-m", "-c"):
            return word if word.endswith(".py") else None
    return None
