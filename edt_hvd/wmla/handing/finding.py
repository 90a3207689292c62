"""Finding the modules of a script: those beneath its folder, which executors import anew."""

import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

import edt_hvd


class Finder(MetaPathFinder):
    """Finds the modules beneath a folder, and is told before and after each is executed.

    Args:
        folder: the script's.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)

    def install(self) -> None:
        """Find modules from now on."""
        sys.meta_path.insert(sys.meta_path.index(PathFinder), self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As in `MetaPathFinder`."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not self._is_ours(spec.loader.path):
            return None
        spec.loader = _Loader(self, spec.loader.name, spec.loader.path)
        return spec

    @contextlib.contextmanager
    def importing(self, name: str) -> Iterator[None]:
        """While the module is executed."""
        yield

    def _is_ours(self, path: str) -> bool:
        """Whether a module belongs to the script, and was not installed beneath its folder."""
        found = Path(os.path.abspath(os.path.dirname(path)))
        real = Path(os.path.realpath(found))
        installed = [sysconfig.get_path("stdlib"), *edt_hvd.__path__]
        return (
            (found.is_relative_to(self.folder) or real.is_relative_to(os.path.realpath(self.folder)))
            and not {"site-packages", "dist-packages"}.intersection(real.parts)
            and not any(real.is_relative_to(os.path.realpath(other)) for other in installed)
        )


class _Loader(SourceFileLoader):
    """Tells a finder."""

    def __init__(self, finder: Finder, name: str, path: str) -> None:
        super().__init__(name, path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        with self._finder.importing(module.__name__):
            super().exec_module(module)
