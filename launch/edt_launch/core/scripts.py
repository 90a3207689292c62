"""The Python script that a command runs, and the name that it gives to a job without one."""

import re
from collections.abc import Sequence
from pathlib import PurePath

WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Python's options whose value is a word of its own."""


def script_of(command: Sequence[str]) -> str | None:
    """The Python script that a command such as `python -u train.py` runs; None if it runs something else."""
    words = iter(command[1:] if PurePath(command[0]).name.startswith("python") else command)
    for word in words:
        if word in WITH_VALUE:
            next(words, None)
        elif not word.startswith("-") or word in ("-m", "-c"):
            return word if word.endswith(".py") else None
    return None


def script_name(command: Sequence[str]) -> str:
    """The name of a command's script, or of its program: letters, digits and ``_.-``, 40 at most."""
    word = next((word for word in command if word.endswith(".py")), command[0])
    return re.sub(r"[^\w.-]+", "-", PurePath(word).name.removesuffix(".py")).strip("-.")[:40] or "job"
