"""Variables of the script and of the user's own modules that the program's hooks change.

Executors that join have what the driver had when `train` was called. What hooks have changed since is
brought to them: globals, attributes of own classes and functions, variables of closures, and attributes of
the objects that the program was given, such as a loss function. A variable counts as changed by a hook if its
pickled form is another after it.
"""

import copy
import hashlib
import importlib
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, cast

import edt_hvd
from edt_hvd.refilling import is_shareable, refilled
from edt_hvd.wmla.by_value import is_own

Dump = Callable[[Any, IO[bytes]], None]
"""Pickles a value into a file."""

_CLOSURE = " of its closure"
"""Follows the name of a variable that a function shares with others."""


class Variable(NamedTuple):
    """Where a variable is.

    Attributes:
        module: its name; empty for an attribute of an object of the program.
        owner: the class or function in it whose attribute it is, or the number of the object; may be empty.
        name: its own.
    """

    module: str
    owner: str
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in self if part)


class Variables:
    """Keeps track of what hooks change.

    Args:
        objects: of the program, whose attributes count, too.
        is_trained: whether a value is brought to executors in another way.
        dump: gives what pickles values, as long as no variable is set.
    """

    def __init__(
        self, objects: Sequence[Any], is_trained: Callable[[Any], bool], dump: Callable[[], Dump]
    ) -> None:
        self._objects = objects
        self._is_trained = is_trained
        self._dump = dump
        self._before: dict[Variable, tuple[Any, bytes | None]] = {}
        """Of those that hooks have changed: what they were before, and a digest of it."""

    @contextmanager
    def watched(self, is_first: bool) -> Iterator[None]:
        """Around a hook: note what it changes; executors that join call the first one, too.

        Warns:
            UserWarning: a variable was set to what cannot be pickled, not in the first hook.
        """
        before = self._digests()
        yield
        for each, (value, after) in self._digests().items():
            was, digest = before.get(each, (None, None))
            if after is not None and after != digest:
                self._before.setdefault(each, (was, digest))
            elif after is None and value is not was and not (is_first or self._is_trained(value)):
                warnings.warn(
                    f"a callback has set {each} to a {type(value).__name__}, which cannot be pickled: "
                    "executors that join later have what their own on_train_begin makes of it",
                    stacklevel=2,
                )

    def shared(self) -> dict[int, Variable]:
        """The variables whose values others may refer to, by ``id`` of these."""
        return {id(value): each for each, value in self._all() if is_shareable(value)}

    def get(self, variable: Variable) -> Any:
        """The present value; None if there is none."""
        return _read(self._owner(variable), variable.name)

    def changed(self) -> dict[Variable, Any]:
        """What hooks have changed, each as a value that is not `shared`."""
        present = dict(self._all())
        return {each: copy.copy(present[each]) for each in self._before if each in present}

    def load(self, saved: Mapping[Variable, Any]) -> None:
        """Set what `changed` gave, in the objects that are there, and take back what is not among it.

        Raises:
            StateError: it was changed in place, so that it cannot be taken back.
        """
        for variable in self._before.keys() - saved.keys():
            value, digest = self._before.pop(variable)
            if digest is None or self._digest(value, self._dump()) != digest:
                raise edt_hvd.StateError(
                    f"{variable} was changed in place by a callback since the last commit, so it cannot be "
                    "taken back after the loss of an executor; set the variable to a new value instead"
                )
            _write(self._owner(variable), variable.name, value)
        for variable, value in saved.items():
            present = self.get(variable)
            self._before.setdefault(variable, (present, None))
            _write(self._owner(variable), variable.name, refilled(present, value))

    def _all(self) -> Iterator[tuple[Variable, Any]]:
        for number, each in enumerate(self._objects):
            yield from _attributes("", f"object {number} of the program", each)
        for name, module in sys.modules.copy().items():
            if name == "__main__" or (is_own(module) and module.__name__ == name):
                yield from _attributes(name, "", module)
                for key, value in list(vars(module).items()):
                    if isinstance(value, type | types.FunctionType) and value.__module__ == name:
                        yield from _attributes(name, key, value)

    def _owner(self, variable: Variable) -> Any:
        if not variable.module:
            return self._objects[int(variable.owner.split()[1])]
        module = sys.modules.get(variable.module) or importlib.import_module(variable.module)
        return vars(module)[variable.owner] if variable.owner else module

    def _digests(self) -> dict[Variable, tuple[Any, bytes | None]]:
        """The values of all variables, and their digests."""
        dump = self._dump()
        return {each: (value, self._digest(value, dump)) for each, value in self._all()}

    def _digest(self, value: Any, dump: Dump) -> bytes | None:
        """A digest of the pickled value; None if it cannot be pickled, or comes in another way."""
        if self._is_trained(value):
            return None
        file = _Hash()
        try:
            dump(copy.copy(value) if is_shareable(value) else value, cast("IO[bytes]", file))
        except Exception:  # noqa: BLE001 - objects raise what they like when they are pickled
            return None
        return file.digest()


class _Hash:
    """A file that keeps a digest of what is written."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self.digest = self._hash.digest

    def write(self, data: bytes) -> int:
        """Add it."""
        self._hash.update(data)
        return len(data)


def _attributes(module: str, owner: str, holder: Any) -> Iterator[tuple[Variable, Any]]:
    function = getattr(holder, "__func__", holder)
    if isinstance(function, types.FunctionType):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__" and cell != types.CellType():
                yield Variable(module, owner, name + _CLOSURE), cell.cell_contents
    for name, value in list(getattr(holder, "__dict__", {}).items()):
        is_special = name.startswith("__") and name.endswith("__")
        if not is_special and not isinstance(value, types.ModuleType):
            yield Variable(module, owner, name), value


def _cell(holder: Any, name: str) -> types.CellType:
    function = getattr(holder, "__func__", holder)
    cell: types.CellType = function.__closure__[function.__code__.co_freevars.index(name)]
    return cell


def _read(holder: Any, name: str) -> Any:
    if not name.endswith(_CLOSURE):
        return vars(holder).get(name)
    cell = _cell(holder, name.removesuffix(_CLOSURE))
    return None if cell == types.CellType() else cell.cell_contents


def _write(holder: Any, name: str, value: Any) -> None:
    if name.endswith(_CLOSURE):
        _cell(holder, name.removesuffix(_CLOSURE)).cell_contents = value
    else:
        setattr(holder, name, value)
