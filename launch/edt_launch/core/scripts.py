"""What a command runs: its Python script or shell script, what is wrong with that, and a name for its job."""

import codecs
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

WITH_VALUE = ("m", "c", "W", "X", "--check-hash-based-pycs")
"""Python's options that have a value, in the same word or in the next."""

SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
SHELL_WITH_VALUE = ("--rcfile", "--init-file", "--emulate")

Which = Callable[[str], str | None]
"""Finds the path of a command, as `shutil.which` does."""

HEAD = 2**16
"""Bytes of a script that are looked at."""


@dataclass(frozen=True)
class ScriptProblem:
    """Why a script cannot run, and what to do about it."""

    text: str
    advice: str


def script_of(command: Sequence[str]) -> str | None:
    """The script that `python -u train.py` or `bash train.sh` runs; None if a command runs something else.

    Of a shell, only a relative path; of no interpreter, only a Python script.
    """
    if PurePath(command[0]).name in SHELLS:
        word = _shell_script(command[1:])
        return word if word is not None and not os.path.isabs(word) else None
    is_python = _is_python(command[0])
    option, word = _target(command[is_python:])
    return word if word is not None and not option and (is_python or word.endswith(".py")) else None


def needed_script(command: Sequence[str]) -> str | None:
    """The script of a command, as `script_of` has it; None where a shell may find it in PATH."""
    script = script_of(command)
    is_shell = PurePath(command[0]).name in SHELLS
    return None if is_shell and script is not None and not _is_path(script) else script


def _is_path(script: str) -> bool:
    return "/" in script or script.endswith(".sh")


def _shell_script(words: Sequence[str]) -> str | None:
    """The script that a shell runs with these words; None if it runs a text or its standard input."""
    left = iter(words)
    for word in left:
        is_short = word[:1] in ("-", "+") and not word.startswith("--")
        if is_short and {"c", "s"} & set(word):
            return None
        if word in SHELL_WITH_VALUE or (is_short and {"o", "O"} & set(word)):
            next(left, None)
        elif not is_short and not word.startswith("--"):
            return word
    return None


def script_name(command: Sequence[str]) -> str:
    """The name of a command's script, module or program: letters, digits and ``_.-``, 40 at most."""
    module = _module(command)
    word = module or next((word for word in command if word.endswith(".py")), command[0])
    return re.sub(r"[^\w.-]+", "-", PurePath(word).name.removesuffix(".py")).strip("-.")[:40] or "job"


def script_problem(
    command: Sequence[str], folder: Path, which: Which | None = shutil.which
) -> ScriptProblem | None:
    """What is wrong with a command and its script, run in `folder`; None if nothing can be seen.

    `which` finds commands as the job will; None where it runs on another machine, whose commands,
    interpreters and absolute paths cannot be seen here.
    """
    first, script = command[0], needed_script(command)
    if first.endswith((".py", ".ipynb")):
        return _python_problem(first, folder, which)
    if (problem := command_problem(first, folder, which)) is not None or script is None:
        return problem
    if _is_python(first):
        return _python_problem(script, folder, which)
    if PurePath(first).name not in SHELLS:
        return None
    return _no_file(script, folder / script) or _text_problem(script, folder / script)


def command_problem(first: str, folder: Path, which: Which | None = shutil.which) -> ScriptProblem | None:
    """Why the system cannot run the first word of a command, as `script_problem` does for all of it."""
    if "/" in first and (which is not None or not os.path.isabs(first)):
        return _program_problem(first, folder / first, which)
    if which is None or which(first) is not None:
        return None
    if os.path.isfile(folder / first):
        return ScriptProblem(f"{first} is a file, but no command in PATH", f"give ./{first}")
    return ScriptProblem(f"{first}: command not found", "give a script (.py) or a command that is in PATH")


def _program_problem(name: str, path: Path, which: Which | None) -> ScriptProblem | None:
    """Of a file that the system is to run by itself."""
    if (problem := _no_file(name, path) or _text_problem(name, path)) is not None:
        return problem
    if not os.access(path, os.X_OK):
        return ScriptProblem(
            f"{name} may not be executed", f"chmod +x {name}, or name its interpreter before it"
        )
    head = _head(path)
    return _interpreter_problem(name, head, which) if head is not None and b"\0" not in head else None


def _interpreter_problem(name: str, head: bytes, which: Which | None) -> ScriptProblem | None:
    line = head.partition(b"\n")[0].decode(errors="replace")
    words = line.removeprefix("#!").split()
    if not line.startswith("#!") or not words:
        return ScriptProblem(
            f"{name} does not begin with #! and the path of its interpreter", "name its interpreter before it"
        )
    missing = next((word for word in _interpreters(words) if which is not None and which(word) is None), None)
    if missing is None:
        return None
    return ScriptProblem(f"{name} is run by {missing}, which is not there", "change its first line")


def _interpreters(words: Sequence[str]) -> list[str]:
    """The programs that a first line names for certain, as absolute paths or commands in PATH."""
    first, *rest = words
    found = [first] if os.path.isabs(first) else []
    if PurePath(first).name != "env":
        return found
    if rest[:1] == ["-S"]:
        rest = rest[1:]
    word = next((word for word in rest if "=" not in word), "")
    is_certain = not word.startswith("-") and (os.path.isabs(word) or "/" not in word)
    is_certain &= not any(word.startswith("PATH=") for word in rest)
    return [*found, word] if is_certain and re.fullmatch(r"[\w./+-]+", word) else found


def _python_problem(script: str, folder: Path, which: Which | None) -> ScriptProblem | None:
    path = folder / script
    if script.endswith(".ipynb"):
        advice = f"make a script of it: jupyter nbconvert --to script {script}"
        return ScriptProblem(f"{script} is a notebook, which Python does not run", advice)
    if which is None and os.path.isabs(script):
        return None
    if os.path.isdir(path):
        if os.path.isfile(path / "__main__.py"):
            return None
        return ScriptProblem(f"{script} is a folder without __main__.py", "name a script in it")
    return _no_file(script, path) or _utf16_problem(script, _head(path) or b"")


def _no_file(script: str, path: Path) -> ScriptProblem | None:
    if os.path.isdir(path):
        return ScriptProblem(f"{script} is a folder", "name a file in it")
    return (
        None if os.path.exists(path) else ScriptProblem(f"{script} is not a file", "name one that is there")
    )


def _text_problem(script: str, path: Path) -> ScriptProblem | None:
    head = _head(path) or b""
    if (problem := _utf16_problem(script, head)) is not None:
        return problem
    if head.startswith(codecs.BOM_UTF8):
        return ScriptProblem(f"{script} begins with a byte order mark", "save it as UTF-8 without one")
    if b"\0" not in head and b"\r\n" in head:
        return ScriptProblem(f"{script} has line ends of Windows", f"convert it: sed -i 's/\\r$//' {script}")
    return None


def _utf16_problem(script: str, head: bytes) -> ScriptProblem | None:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ScriptProblem(f"{script} is in UTF-16", "save it as UTF-8")
    return None


def _head(path: Path) -> bytes | None:
    """The beginning of a file; None if it is none that can be read."""
    try:
        if os.path.isfile(path):
            with path.open("rb") as file:
                return file.read(HEAD)
    except OSError:  # whoever runs it may be allowed to read it
        pass
    return None


def _is_python(word: str) -> bool:
    return re.fullmatch(r"python[0-9.]*", PurePath(word).name) is not None


def _module(command: Sequence[str]) -> str | None:
    """The module of `python -m MODULE`; None for other commands."""
    option, word = _target(command[1:])
    return word if _is_python(command[0]) and option == "m" else None


def _target(words: Sequence[str]) -> tuple[str, str | None]:
    """What Python runs with these words: the option m or c and its value, or "" and a script, if any."""
    left = iter(words)
    for word in left:
        if word == "-":  # standard input
            break
        if not word.startswith("-"):
            return "", word
        letter, value = _last_option(word)
        if letter in WITH_VALUE:
            value = value or next(left, "")
        if letter in ("m", "c"):
            return letter, value or None
    return "", None


def _last_option(word: str) -> tuple[str, str]:
    """The option with a value at the end of such as -uWignore, and the value, if it is in the same word."""
    if word.startswith("--"):
        return word, ""
    for index, letter in enumerate(word):
        if letter in WITH_VALUE:
            return letter, word[index + 1 :]
    return "", ""
