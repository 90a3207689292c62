"""Which commands a warm interpreter can run: a pure decision.

A warm server has the interpreter and its options already; left to choose is the script or the module.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Program:
    """A Python script or module, the command and options that it runs under, and its arguments."""

    interpreter: tuple[str, ...]
    script: str | None
    module: str | None
    arguments: tuple[str, ...]


def parse(
    words: Sequence[str],
    python: str = sys.executable,
    which: Callable[[str], str | None] = shutil.which,
) -> Program | None:
    """The program in a command, if an interpreter that has imported much already can run it; else None.

    That is ``python [-u] SCRIPT.py ...`` or ``python [-u] -m MODULE ...`` with the interpreter of this
    environment. Any other option might change what the imports do.
    """
    if not words or not _is_same(words[0], python, which):
        return None
    options = 2 if tuple(words[1:2]) == ("-u",) else 1
    interpreter, rest = tuple(words[:options]), words[options:]
    if rest and rest[0].endswith(".py") and not rest[0].startswith("-"):
        return Program(interpreter, rest[0], None, tuple(rest[1:]))
    if len(rest) > 1 and rest[0] == "-m" and _MODULE.fullmatch(rest[1]):
        return Program(interpreter, None, rest[1], tuple(rest[2:]))
    return None


def _is_same(command: str, python: str, which: Callable[[str], str | None]) -> bool:
    """Whether a command is the interpreter `python`, under any of its names in the same folder."""
    folder, name = os.path.split(command)
    path = command if folder else which(command)
    if path is None or path == python:
        return path == python
    return (
        _PYTHON.fullmatch(name) is not None
        and os.path.dirname(os.path.abspath(path)) == os.path.dirname(python)
        and os.path.realpath(path) == os.path.realpath(python)
    )
