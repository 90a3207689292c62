"""Files in a data set, found by descriptors of their folders, so that no link leads anywhere else."""

import contextlib
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from edt_launch.service.data import folders
from edt_launch.service.data.data_set import DataSet
from edt_launch.service.data.disk import remove_empty
from edt_launch.service.data.folders import OWN
from edt_launch.service.errors import InvalidError
from edt_launch.service.files.archives.plan import parts_of


def parts(path: str) -> list[str]:
    """The folders and the name of a file; `InvalidError` if none can be called that."""
    found = parts_of(path)
    is_plain = all(map(folders.is_plain, found))
    if not found or not is_plain or path.endswith("/") or any(one.startswith(OWN) for one in found):
        raise InvalidError(f"{path[:200]!r} is no name of a file in a data set", "name a file")
    return found


def status_in(name: str, folder: int) -> os.stat_result | None:
    """What has a name in a folder; None if nothing has."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


class SetFiles:
    """The files of a data set.

    Args:
        root: the folder of data.
        data_set: need not be there.
        is_for_all: whether other accounts are to read it.
    """

    def __init__(self, root: Path, data_set: DataSet, *, is_for_all: bool) -> None:
        self._root = root
        self._path = data_set.path
        self._is_for_all = is_for_all

    def folder(self, above: Sequence[str]) -> AbstractContextManager[int]:
        """A descriptor of a folder in it."""
        return folders.opened(self._root, "/".join([self._path, *above]))

    def status(self, names: Sequence[str]) -> os.stat_result | None:
        """What is at a path in it; None if nothing is."""
        *above, own = self._path.split("/")
        if not os.path.lexists(self._root / self._path):
            return None
        found = None
        for name in (own, *names):
            with folders.opened(self._root, "/".join(above)) as folder:
                found = status_in(name, folder)
            if found is None:
                return None
            above.append(name)
        return found

    def make_folders(self, above: Sequence[str], undo: contextlib.ExitStack) -> None:
        """Make it, and folders in it; `undo` removes those that were not there."""
        *path, own = self._path.split("/")
        for name in (own, *above):
            with (
                folders.opened(self._root, "/".join(path)) as descriptor,
                contextlib.suppress(FileExistsError),
            ):
                os.mkdir(name, 0o755, dir_fd=descriptor)
                undo.callback(remove_empty, self._root.joinpath(*path, name))
                if self._is_for_all:
                    os.chmod(name, 0o755, dir_fd=descriptor)
            path.append(name)
