"""Keeps executors from repeating what the driver's script has written before `train`.

Every executor runs the script up to `train`. What the script writes for all belongs to the driver: done
again, later, on several hosts, it would replace or remove results of the training that is under way.

It sees what goes through Python's audit events, `torch.save` to a path, and SQLite databases that are named
by path; not `os.open` with ``dir_fd``, which its event leaves out, nor what other C++ code and other
processes write.
"""

import contextlib
import functools
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import edt_hvd
from edt_hvd.wmla.errors import WriteRefusedError

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LIBRARIES = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *edt_hvd.__path__})


class WriteGuard:
    """Refuses to write or remove below `result_dir`, to move or remove a folder above it, and to remove whole
    folders other than temporary ones.

    Args:
        result_dir: what the job's processes share.
        own: folders that are this process's own, below `result_dir` or not.

    Attributes:
        is_lifted: whether nothing is refused.
    """

    def __init__(self, result_dir: Path, own: Iterable[Path]) -> None:
        self._root = _real(result_dir)
        temporary = _real(tempfile.gettempdir())
        self._temporary = temporary
        owned = {*map(_real, own), temporary}
        self._own = tuple(folder for folder in owned if _is_in(folder, self._root) and folder != self._root)
        self.is_lifted = False

    def install(self) -> None:
        """Guard from now on, except while it is lifted: there is no way to uninstall an audit hook."""
        sys.addaudithook(self._audit)
        torch.save = torch.serialization.save = _audited(torch.save)

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """Refuse nothing in the context, in any thread."""
        self.is_lifted = True
        try:
            yield
        finally:
            self.is_lifted = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        paths_of = None if self.is_lifted else _EVENTS.get(event)
        if paths_of is None:
            return
        for path in paths_of(*arguments):
            real = _real(path) if event in _THROUGH_LINKS else _entry(path)
            if self._is_refused(real, is_tree=event == "shutil.rmtree"):
                raise WriteRefusedError(_VERBS.get(event, "writes"), path, _script_line(sys._getframe(1)))

    def _is_refused(self, path: str, *, is_tree: bool) -> bool:
        if any(_is_in(path, folder) for folder in self._own) or "__pycache__" in path.split(os.sep):
            return False
        is_shared = _is_in(path, self._root) or _is_in(self._root, path)
        return is_shared or (is_tree and not _is_in(path, self._temporary))


# What is written or removed, by the names of audit events; None stands for nothing.


def _opened(path: Any, _mode: Any, flags: int) -> Iterator[str]:
    if not isinstance(path, int) and flags & _WRITING:
        yield os.fsdecode(path)


def _made(path: Any, _mode: int, folder: int) -> Iterator[str]:
    yield from (found for found in _named(path, folder) if not os.path.lexists(found))


def _removed(path: Any, folder: int | None = None) -> Iterator[str]:
    yield from filter(os.path.lexists, _named(path, folder))


def _moved(source: Any, target: Any, source_folder: int, target_folder: int) -> Iterator[str]:
    yield from _removed(source, source_folder)
    yield from _named(target, target_folder)


def _linked(_source: Any, target: Any, *folders: int) -> Iterator[str]:
    yield from _named(target, folders[-1])


def _connected(database: Any) -> Iterator[str]:
    name = os.fsdecode(database)
    if name not in ("", ":memory:") and not name.startswith("file:"):
        yield name


def _named(path: Any, folder: int | None) -> Iterator[str]:
    if not isinstance(path, int):
        above = "" if folder is None or folder < 0 else os.readlink(f"/proc/self/fd/{folder}")
        yield os.path.join(above, os.fsdecode(path))


_EVENTS: Mapping[str, Callable[..., Iterator[str]]] = {
    "open": _opened,
    "os.link": _linked,
    "os.mkdir": _made,
    "os.remove": _removed,
    "os.rename": _moved,
    "os.rmdir": _removed,
    "os.symlink": _linked,
    "os.truncate": lambda path, _: _named(path, None),
    "shutil.rmtree": _removed,
    "sqlite3.connect": _connected,
    "torch.save": lambda path: _named(path, None),
}
_THROUGH_LINKS = ("open", "os.truncate", "sqlite3.connect", "torch.save")
"""Events of what a symbolic link leads to; the others are of the link itself."""

_VERBS = {"os.remove": "removes", "os.rename": "moves", "os.rmdir": "removes", "shutil.rmtree": "removes"}


def _audited(save: Callable[..., None]) -> Callable[..., None]:
    """`torch.save`, which opens a path in C++, with an audit event of its own."""

    @functools.wraps(save)
    def audited(obj: Any, f: Any, *arguments: Any, **named: Any) -> None:
        if isinstance(f, str | os.PathLike):
            sys.audit("torch.save", f)
        save(obj, f, *arguments, **named)

    return audited


def _script_line(frame: FrameType | None) -> str:
    """The script's line, or of one of its modules, that is under way: the innermost outside of libraries."""
    innermost, at = frame, frame
    while at is not None:
        name = at.f_code.co_filename
        if not name.startswith("<") and not _is_library(name):
            innermost = at
            break
        at = at.f_back
    return "" if innermost is None else f"{innermost.f_code.co_filename}, line {innermost.f_lineno}"


def _is_library(name: str) -> bool:
    parts = name.split(os.sep)
    installed = "site-packages" in parts or "dist-packages" in parts
    return installed or any(_is_in(name, folder) for folder in _LIBRARIES)


def _real(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(path)


def _entry(path: str) -> str:
    """The path of a file or link itself, in a folder that may be reached through links."""
    folder, name = os.path.split(path.rstrip(os.sep))
    return _real(path) if name in ("", ".", "..") else os.path.join(_real(folder), name)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))
