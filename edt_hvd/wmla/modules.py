"""What a script has put into modules of its own: ``import config; config.data_dir = args.data_dir``.

Executors import these modules anew, each as it is needed, with the arguments and the random numbers that it
found in the driver, and are given what has changed in them since. The rest stays as importing makes it there:
paths for logs and the device differ between driver and executors. What changes is seen of plain data
(`plain`), and of attributes that are another object now.
"""

import contextlib
import functools
import os
import pickle
import sys
import sysconfig
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

import edt_hvd
from edt_hvd.wmla.generators import Generators
from edt_hvd.wmla.plain import NotPlainError, form, put

Names = tuple[str, ...]
"""Of an attribute of a module: its name; or a class's in the module, and its name in the class."""


@dataclass(frozen=True)
class Start:
    """What a module found when its import began."""

    arguments: Sequence[str]
    generators: Generators


@dataclass(frozen=True)
class Given:
    """What executors are given of a module.

    Attributes:
        start: restored before it is imported; None if that was while another one was.
        changes: pickled, by the names of the attributes.
    """

    start: Start | None
    changes: Mapping[Names, bytes]


class Finder(MetaPathFinder):
    """Finds the modules beneath a folder, and is told before and after each is executed.

    Args:
        folder: the script's.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)

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
        folder = Path(os.path.realpath(os.path.dirname(path)))
        installed = [sysconfig.get_path("stdlib"), *edt_hvd.__path__]
        return (
            folder.is_relative_to(self.folder)
            and not {"site-packages", "dist-packages"}.intersection(folder.parts)
            and not any(folder.is_relative_to(os.path.realpath(other)) for other in installed)
        )


class _Loader(SourceFileLoader):
    """Tells a finder."""

    def __init__(self, finder: Finder, name: str, path: str) -> None:
        super().__init__(name, path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        with self._finder.importing(module.__name__):
            super().exec_module(module)


@dataclass
class _Imported:
    """A module in the driver: what it found, and its attributes when it had been imported."""

    start: Start | None
    values: dict[Names, tuple[Any, Hashable]] = field(default_factory=dict)


class Watch(Finder):
    """The driver's: remembers what modules are like when they have been imported."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._imported: dict[str, _Imported] = {}
        self._depth = 0

    @contextlib.contextmanager
    def importing(self, name: str) -> Iterator[None]:
        """As in `Finder`."""
        start = None if self._depth else Start(list(sys.argv), Generators.now())
        self._imported[name] = imported = _Imported(start)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        imported.values = {n: (value, self._form(value)) for n, value in _attributes(name)}

    def given(self) -> dict[str, Given]:
        """What executors are given of each module. Warns of what has changed, but cannot be sent."""
        return {
            name: Given(imported.start, dict(self._changes(name, imported.values)))
            for name, imported in self._imported.items()
            if name in sys.modules
        }

    def holding(self, parts: Sequence[Any]) -> dict[tuple[str, Names], Any]:
        """The attributes of all modules that are one of the parts, or have one as an attribute."""
        wanted = {id(part) for part in parts}
        return {
            (module, names): value
            for module in self._imported
            for names, value in _attributes(module)
            if id(value) in wanted or any(id(each) in wanted for each in _held(value))
        }

    def _changes(self, module: str, before: Mapping[Names, Any]) -> Iterator[tuple[Names, bytes]]:
        for names, value in _attributes(module):
            old, old_form = before.get(names, (_MISSING, None))
            if value is old and self._form(value) == old_form:
                continue
            try:
                yield names, cloudpickle.dumps(value)
            except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
                warnings.warn(
                    f"{'.'.join((module, *names))} is not sent to the executors, which have it as importing "
                    f"{module} leaves it: {error}",
                    stacklevel=2,
                )

    def _form(self, value: Any) -> Hashable:
        try:
            return form(value, lambda kind: kind.__module__ in self._imported)
        except NotPlainError:
            return None


class Following(Finder):
    """An executor's: gives modules what they had in the driver.

    Args:
        folder: the script's.
        given: by the names of modules.
    """

    def __init__(self, folder: str, given: Mapping[str, Given]) -> None:
        super().__init__(folder)
        self._given = given
        self._handed: dict[tuple[str, Names], Any] = {}

    @contextlib.contextmanager
    def importing(self, name: str) -> Iterator[None]:
        """As in `Finder`."""
        given = self._given.get(name, Given(None, {}))
        present = list(sys.argv)
        if given.start is not None:
            sys.argv[:] = given.start.arguments
            given.start.generators.restore()
        try:
            yield
        finally:
            if given.start is not None:
                sys.argv[:] = present
        for names, content in given.changes.items():
            _set(name, names, pickle.loads(content))
        self._hand_out(name)

    def hand_out(self, handed: Mapping[tuple[str, Names], Any]) -> None:
        """Set these attributes, at once or when their module has been imported."""
        self._handed = dict(handed)
        for name in {module for module, _ in handed if module in sys.modules}:
            self._hand_out(name)

    def _hand_out(self, name: str) -> None:
        for (module, (*owners, attribute)), value in self._handed.items():
            if module == name:
                setattr(functools.reduce(getattr, owners, sys.modules[module]), attribute, value)


_MISSING = object()


def _set(module: str, names: Names, value: Any) -> None:
    *owners, attribute = names
    put(functools.reduce(getattr, owners, sys.modules[module]), attribute, value)


def watch() -> Watch | None:
    """This process's, if it is a driver."""
    return next((finder for finder in sys.meta_path if isinstance(finder, Watch)), None)


def _attributes(module: str) -> Iterator[tuple[Names, Any]]:
    """A module's, and those of its classes; of what a module has put in its own place, too."""
    for name, value in _own(sys.modules.get(module)):
        yield (name,), value
        if isinstance(value, type) and value.__module__ == module:
            yield from (((name, inner), each) for inner, each in _own(value))


def _own(owner: Any) -> Iterator[tuple[str, Any]]:
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        if not isinstance(value, ModuleType) and not (name.startswith("__") and name.endswith("__")):
            yield name, value


def _held(value: Any) -> list[Any]:
    return [] if isinstance(value, type) else list(getattr(value, "__dict__", {}).values())
