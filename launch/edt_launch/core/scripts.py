"""What a command runs: its Python script or shell script, what is wrong with that, and a name for its job."""

import codecs
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePath

WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Python's options whose value is a word of its own."""

SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})

HEAD = 2**16
"""Bytes of a script that are looked at."""


@dataclass(frozen=True)
class ScriptProblem:
    """Why a script cannot run, and what to do about it."""

    text: str
    advice: str


def script_of(command: Sequence[str]) -> str | None:
    """The script that `python -u train.py` or `bash train.sh` runs; None if a command runs something else."""
    if PurePath(command[0]).name in SHELLS:
        return _shell_script(command[1:])
    word = _first(command[1:] if _is_python(command[0]) else command)
    return word if word is not None and word.endswith(".py") else None


def _shell_script(words: Sequence[str]) -> str | None:
    """The script in the code that a shell runs, known by its name; None if it runs something else."""
    options = list(takewhile(lambda word: word.startswith("-"), words))
    if any(not option.startswith("--") and {"c", "s"} & set(option) for option in options):
        return None
    word = next(iter(words[len(options) :]), "")
    return word if word.endswith(".sh") and not os.path.isabs(word) else None


def script_name(command: Sequence[str]) -> str:
    """The name of a command's script, module or program: letters, digits and ``_.-``, 40 at most."""
    module = _module(command)
    word = module or next((word for word in command if word.endswith(".py")), command[0])
    return re.sub(r"[^\w.-]+", "-", PurePath(word).name.removesuffix(".py")).strip("-.")[:40] or "job"


def script_problem(
    command: Sequence[str], folder: Path, which: Callable[[str], str | None] = shutil.which
) -> ScriptProblem | None:
    """What is wrong with the script of a command that runs in `folder`; None if nothing can be seen."""
    first = command[0]
    if first.endswith((".py", ".ipynb")) or _is_python(first):
        script = _first(command[1:] if _is_python(first) else command)
        return None if script is None else _python_problem(script, folder)
    if PurePath(first).name in SHELLS:
        script = _first(command[1:])
        return None if script is None or script == "-c" else _text_problem(script, _head(folder / script))
    if "/" not in first:
        if not (folder / first).is_file() or which(first) is not None:
            return None
        return ScriptProblem(f"{first} is a file, but no command in PATH", f"give ./{first}")
    path = folder / first
    if os.path.isabs(first) or (head := _head(path)) is None:
        return (
            None
            if os.path.isabs(first)
            else ScriptProblem(f"{first} is not a file", "name one that is there")
        )
    return _text_problem(first, head) or _program_problem(first, path, head)


def _python_problem(script: str, folder: Path) -> ScriptProblem | None:
    if script.endswith(".ipynb"):
        advice = f"make a script of it: jupyter nbconvert --to script {script}"
        return ScriptProblem(f"{script} is a notebook, which Python does not run", advice)
    head = _head(folder / script) or b""
    return _utf16_problem(script, head)


def _text_problem(script: str, head: bytes | None) -> ScriptProblem | None:
    if head is None or (problem := _utf16_problem(script, head)) is not None:
        return problem if head is not None else None
    if head.startswith(codecs.BOM_UTF8):
        return ScriptProblem(f"{script} begins with a byte order mark", "save it as UTF-8 without one")
    if b"\0" not in head and b"\r\n" in head:
        return ScriptProblem(f"{script} has line ends of Windows", f"convert it: sed -i 's/\\r$//' {script}")
    return None


def _utf16_problem(script: str, head: bytes) -> ScriptProblem | None:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ScriptProblem(f"{script} is in UTF-16", "save it as UTF-8")
    return None


def _program_problem(first: str, path: Path, head: bytes) -> ScriptProblem | None:
    """Of a file that the system is to run by itself."""
    is_text = b"\0" not in head
    if not os.access(path, os.X_OK):
        return ScriptProblem(
            f"{first} may not be executed", f"chmod +x {first}, or name its interpreter before it"
        )
    if is_text and not head.startswith(b"#!"):
        return ScriptProblem(
            f"{first} does not begin with #! and the path of its interpreter",
            "name its interpreter before it",
        )
    return None


def _head(path: Path) -> bytes | None:
    """The beginning of a file; None if it is none that can be read."""
    try:
        if path.is_file():
            with path.open("rb") as file:
                return file.read(HEAD)
    except OSError:  # whoever runs it may be allowed to read it
        pass
    return None


def _is_python(word: str) -> bool:
    return PurePath(word).name.startswith("python")


def _module(command: Sequence[str]) -> str | None:
    """The module of `python -m MODULE`; None for other commands."""
    if not _is_python(command[0]) or _first(command[1:]) != "-m":
        return None
    return next(iter(command[command.index("-m") + 1 :]), None)


def _first(words: Sequence[str]) -> str | None:
    """The first word behind an interpreter's options, or the option -m or -c; None if there is none."""
    left = iter(words)
    for word in left:
        if word in WITH_VALUE:
            next(left, None)
        elif not word.startswith("-") or word in ("-m", "-c"):
            return word
    return None
