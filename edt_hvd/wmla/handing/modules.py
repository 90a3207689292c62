"""What a script has put into modules of its own: ``import config; config.data_dir = args.data_dir``.

Executors import these modules anew, each as it is needed, with the arguments and the random numbers that it
found in the driver, and are given what has changed in them since (`following`). The rest stays as importing
makes it there: paths for logs and the device differ between driver and executors. What changes is seen as far
as `forms` sees into objects, and of attributes that are another object now.
"""

import contextlib
import sys
import warnings
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from edt_hvd.wmla.handing.finding import Finder
from edt_hvd.wmla.handing.forms import IMMUTABLE, LIMIT, Forms, Same, attributes, is_plain_object, reached
from edt_hvd.wmla.handing.generators import Generators
from edt_hvd.wmla.handing.pickling import Names, Place, dumps

DEPTH = 3
"""Objects in objects whose attributes are looked at one by one."""

UNCHANGED = frozenset(map(id, (FunctionType, BuiltinFunctionType, type, staticmethod, classmethod, property)))
"""Types whose objects modules hardly exchange in each other while they are imported."""

MOST = 1_000_000
"""Objects in all looks; a module has some hundreds."""


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
        owners: what had attributes of its own then.
        size: the number of objects that were looked at for them.
        changed: those that have changed, with the modules whose imports may have done that; None: the script.
    """

    start: Start
    outer: str | None
    values: Values = field(default_factory=dict)
    latest: Values = field(default_factory=dict)
    owners: Collection[tuple[Names, Same]] = ()
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
        if outer is None:
            self._look([None])
        self._imported[name] = imported = _Imported(Start.now(), outer)
        self._present.append(name)
        try:
            yield
        except BaseException:
            del self._imported[name]
            raise
        finally:
            self._present.pop()
        self._look([name, *reversed(self._present)])
        before = self._forms.seen
        imported.values = self._values(name)
        imported.latest = dict(imported.values)
        imported.owners = [(names, Same(owner)) for names, owner in self._owners(name)]
        imported.size = self._forms.seen - before
        self._imported[name] = self._imported.pop(name)  # after those that it imports

    def hand_out(self, parts: Sequence[Any]) -> dict[Place, Any]:
        """The attributes of all modules that are one of the parts, or have one in them.

        They are sent with the parts, and left out of what else is given from now on.
        """
        wanted = {id(part) for part in parts}
        self._look([None], is_last=True)
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

    def _look(self, doers: Collection[str | None], is_last: bool = False) -> None:
        """Note what has changed since the last look, and whose doing that may have been.

        Args:
            doers: the modules that are being imported; None is the script.
            is_last: look at everything. Else it must be quick, since it is for every import: what is too much
                to look at counts as the script's doing.
        """
        if self._forms.seen > MOST and not is_last:
            return
        for name, imported in self._imported.items():
            if name in doers or (imported.size > LIMIT and not is_last):
                continue
            latest = self._values(name) if is_last else self._quick_values(name, imported.owners)
            for names, known in latest.items():
                if known != imported.latest.get(names):
                    imported.latest[names] = known
                    imported.changed.setdefault(names, {}).update(dict.fromkeys(doers))

    def _quick_values(self, module: str, owners: Collection[tuple[Names, Same]]) -> Values:
        return {
            (*names, name): self._known((*names, name), value)
            for names, owner in owners
            for name, value in _own(owner.get(), module)
            if id(type(value)) not in UNCHANGED
        }

    def _values(self, module: str) -> Values:
        return {names: self._known(names, value) for names, value in self._attributes(module)}

    def _known(self, names: Names, value: Any) -> tuple[Same, Hashable]:
        return Same(value), Same(value) if self._is_open(names, value) else self._forms.of(value)

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
        for names, owner in self._owners(module):
            yield from (((*names, name), value) for name, value in _own(owner, module))

    def _owners(self, module: str) -> Iterator[tuple[Names, Any]]:
        """The module, and those of which each attribute is looked at; what is in others comes after these."""
        found: list[tuple[Names, Any]] = [((), sys.modules.get(module))]
        seen: set[int] = set()
        for names, owner in found:  # it grows meanwhile
            yield names, owner
            for name, value in _own(owner, module):
                is_class = issubclass(type(value), type) and _module(value) == module and len(names) < DEPTH
                if (is_class or self._is_open((*names, name), value)) and id(value) not in seen:
                    seen.add(id(value))
                    found.append(((*names, name), value))

    def _is_open(self, names: Names, value: Any) -> bool:
        """Whether it is an object whose attributes are compared, and sent, one by one."""
        return len(names) <= DEPTH and is_plain_object(value, self._is_own)

    def _is_own(self, kind: type) -> bool:
        return _module(kind) in self._imported


_MISSING = Same(object())


def _module(value: Any) -> str | None:
    """That of a class or function."""
    return getattr(value, "__module__", None)


def _own(owner: Any, module: str) -> Iterator[tuple[str, Any]]:
    """An object's attributes, without those that Python and the import system have put there."""
    for name, value in attributes(owner).items():
        is_inner = issubclass(type(value), ModuleType) and _is_inside(value, module)
        if not is_inner and not (name.startswith("__") and name.endswith("__")):
            yield name, value


def _is_inside(value: ModuleType, package: str) -> bool:
    """Whether it is one that importing it has put into its package."""
    return str(vars(value).get("__name__")).startswith(f"{package}.")


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
