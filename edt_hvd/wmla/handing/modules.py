"""What a script has put into modules of its own: ``import config; config.data_dir = args.data_dir``.

Executors import these modules anew, each as it is needed, with the arguments and the random numbers that it
found in the driver, and are given what has changed in them since (`following`). The rest stays as importing
makes it there: paths for logs and the device differ between driver and executors. What changes is seen as far
as `forms` sees into objects, and of attributes that are another object now.
"""

import contextlib
import sys
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from edt_hvd.wmla.handing.finding import Finder
from edt_hvd.wmla.handing.forms import IMMUTABLE, LIMIT, Forms, Same, attributes, is_plain_object, reached
from edt_hvd.wmla.handing.generators import Generators
from edt_hvd.wmla.handing.pickling import Names, Place, dumps

DEPTH = 3
"""Objects in objects whose attributes are looked at one by one."""


@dataclass(frozen=True)
class Start:
    """What a module found when its import began."""

    arguments: Sequence[str]
    generators: Generators

    @classmethod
    def now(cls) -> "Start":
        """As it is in this process."""
        return cls(list(sys.argv), Generators.now())

    def restore(self) -> None:
        """Have this process's like that."""
        sys.argv[:] = self.arguments
        self.generators.restore()


@dataclass(frozen=True)
class Change:
    """What has become of an attribute.

    Attributes:
        is_in_place: it is the object that it was, but not as it was.
        is_last: the imports of other modules change it, too, before.
        content: by `pickling`.
    """

    is_in_place: bool
    is_last: bool
    content: bytes


@dataclass(frozen=True)
class Given:
    """What executors are given of a module.

    Attributes:
        start: restored before it is imported.
        outer: the module whose import has imported it; None if that was the script.
        makers: modules whose imports have put something into it; imported with it, before what the script
            has put into it is.
        changes: by the names of the attributes.
    """

    start: Start
    outer: str | None
    makers: Sequence[str]
    changes: Mapping[Names, Change]


Values = dict[Names, tuple[Same, Hashable]]
"""Attributes, and their forms."""


@dataclass
class _Imported:
    """A module in the driver.

    Attributes:
        start: as in `Given`.
        outer: as in `Given`.
        values: its attributes when it had been imported.
        latest: those of the last look.
        size: the number of objects that were looked at for them.
        changed: those that have been changed by the imports of others, or by the script, which is None.
    """

    start: Start
    outer: str | None
    values: Values = field(default_factory=dict)
    latest: Values = field(default_factory=dict)
    size: int = 0
    changed: dict[Names, dict[str | None, None]] = field(default_factory=dict)

    @property
    def makers(self) -> list[str]:
        """The others, in the order of their imports."""
        return list({by: None for each in self.changed.values() for by in each if by is not None})


class Watch(Finder):
    """The driver's: remembers what modules are like when they have been imported."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._imported: dict[str, _Imported] = {}
        self._present: list[str] = []
        self._forms = Forms(self._is_own)
        self._handed: dict[Place, Any] = {}
        self._places: dict[bool, dict[int, Place]] = {}

    @contextlib.contextmanager
    def importing(self, name: str) -> Iterator[None]:
        """As in `Finder`."""
        if name in self._imported:  # again: what that changes is the script's doing
            yield
            return
        outer = self._present[-1] if self._present else None
        self._look(outer)
        self._imported[name] = imported = _Imported(Start.now(), outer)
        self._present.append(name)
        try:
            yield
        finally:
            self._present.pop()
        self._look(name)
        before = self._forms.seen
        imported.values = imported.latest = self._values(name)
        imported.size = self._forms.seen - before
        self._imported[name] = self._imported.pop(name)  # after those that it imports

    def hand_out(self, parts: Sequence[Any]) -> dict[Place, Any]:
        """The attributes of all modules that are one of the parts, or have one in them.

        They are sent with the parts, and left out of what else is given from now on.
        """
        wanted = {id(part) for part in parts}
        self._look(None, at_all=True)
        self._places.clear()
        self._handed = {
            (module, names): value
            for module in self._imported
            for names, value in self._attributes(module)
            if id(value) in wanted
            or (
                not self._is_open(names, value)
                and any(id(each) in wanted for each in reached(value, self._is_own))
            )
        }
        return self._handed

    def dumps(self, value: Any, own: str | None = None) -> bytes:
        """A pickle of what executors are given; its objects that they find in modules are named in it.

        Args:
            value: anything.
            own: as in `pickling.dumps`.
        """
        with contextlib.suppress(Exception):  # objects raise what they like when they are pickled
            return dumps(value, self._found(also_unseen=False), own)
        return dumps(value, self._found(also_unseen=True), own)  # locks are each one's own

    def _found(self, also_unseen: bool) -> Mapping[int, Place]:
        """Where executors find objects that the script's modules have had since they were imported, by ids.

        Args:
            also_unseen: with the objects whose changes are not seen.
        """
        if also_unseen not in self._places:
            places = self._places[also_unseen] = {}
            for module, imported in self._imported.items():
                for names, value in self._attributes(module):
                    old, old_form = imported.values.get(names, (_MISSING, None))
                    is_known = also_unseen or old_form != old or self._has_no_changes(names, value)
                    is_one = old.is_of(value) and not issubclass(type(value), (*IMMUTABLE, type, ModuleType))
                    if is_one and is_known and (module, names) not in self._handed:
                        places.setdefault(id(value), (module, names))
        return self._places[also_unseen]

    def _has_no_changes(self, names: Names, value: Any) -> bool:
        """Whether it is a mark, a function, or one whose attributes are places of their own."""
        is_own_function = type(value) is FunctionType and _module(value) in self._imported
        return type(value) is object or is_own_function or self._is_open(names, value)

    def given(self) -> dict[str, Given]:
        """What executors are given of each module. Warns of what has changed, but cannot be sent."""
        return {
            name: Given(imported.start, imported.outer, imported.makers, dict(self._changes(name, imported)))
            for name, imported in self._imported.items()
            if name in sys.modules
        }

    def _look(self, by: str | None, at_all: bool = False) -> None:
        """Note what has changed since the last look, and whose doing that was.

        Args:
            by: the module that is being imported; None if that is the script.
            at_all: also at modules in which there is much to look at, whose changes count as the script's.
        """
        for name, imported in self._imported.items():
            if name in self._present or (imported.size > LIMIT and not at_all):
                continue
            before, imported.latest = imported.latest, self._values(name)
            for names, known in imported.latest.items():
                if by != name and known != before.get(names):
                    imported.changed.setdefault(names, {})[by] = None

    def _values(self, module: str) -> Values:
        return {n: (Same(value), self._form(n, value)) for n, value in self._attributes(module)}

    def _changes(self, module: str, imported: _Imported) -> Iterator[tuple[Names, Change]]:
        whole: set[Names] = set()
        for names, value in self._attributes(module):
            outer = {names[: i + 1] for i in range(len(names))}
            doers = imported.changed.get(names, {})
            if None not in doers or whole & outer or any((module, each) in self._handed for each in outer):
                continue
            whole.add(names)
            is_in_place = imported.values.get(names, (_MISSING, None))[0].is_of(value)
            try:
                yield names, Change(is_in_place, len(doers) > 1, self.dumps(value, own=module))
            except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
                warn(module, names, error)

    def _attributes(self, module: str) -> Iterator[tuple[Names, Any]]:
        """A module's, those of its classes, and of objects of the script's classes that it has."""
        yield from self._beneath((), sys.modules.get(module), module, set())

    def _beneath(self, names: Names, owner: Any, module: str, seen: set[int]) -> Iterator[tuple[Names, Any]]:
        for name, value in attributes(owner).items():
            is_module = issubclass(type(value), ModuleType)
            if (name.startswith("__") and name.endswith("__")) or (is_module and _is_inside(value, module)):
                continue
            yield (*names, name), value
            is_class = issubclass(type(value), type) and _module(value) == module
            is_open = (is_class and len(names) < DEPTH) or self._is_open((*names, name), value)
            if is_open and id(value) not in seen:
                seen.add(id(value))
                yield from self._beneath((*names, name), value, module, seen)

    def _form(self, names: Names, value: Any) -> Hashable:
        return Same(value) if self._is_open(names, value) else self._forms.of(value)

    def _is_open(self, names: Names, value: Any) -> bool:
        """Whether it is an object whose attributes are compared, and sent, one by one."""
        return len(names) <= DEPTH and is_plain_object(value, self._is_own)

    def _is_own(self, kind: type) -> bool:
        return _module(kind) in self._imported


_MISSING = Same(object())


def _module(value: Any) -> str | None:
    """That of a class or function."""
    return getattr(value, "__module__", None)


def _is_inside(value: ModuleType, package: str) -> bool:
    """Whether it is one that importing it has put into its package."""
    return value.__name__.startswith(f"{package}.")


def warn(module: str, names: Names, error: Exception) -> None:
    """Warn of what cannot be sent."""
    warnings.warn(
        f"{'.'.join((module, *names))} is not sent to the executors, which have it as importing {module} "
        f"leaves it: {error}",
        stacklevel=2,
    )


def watch() -> Watch | None:
    """This process's, if it is a driver."""
    return next((finder for finder in sys.meta_path if isinstance(finder, Watch)), None)
