"""Variables of the script that the methods of objects use: globals, and those of functions around them."""

import dis
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

MISSING = object()
"""Stands for the value of a variable that has none."""


@dataclass(frozen=True)
class Variable:
    """A variable, which need not have a value.

    Attributes:
        name: as the code has it.
        place: a module's globals, or the cell that holds it.
        is_assigned: whether the methods assign it.
    """

    name: str
    place: dict[str, Any] | CellType
    is_assigned: bool

    @property
    def value(self) -> Any:
        """Its value, or `MISSING`."""
        if isinstance(self.place, dict):
            return self.place.get(self.name, MISSING)
        try:
            return self.place.cell_contents
        except ValueError:  # not assigned yet
            return MISSING

    def assign(self, value: Any) -> None:
        """Give it another value."""
        if isinstance(self.place, dict):
            self.place[self.name] = value
        else:
            self.place.cell_contents = value


def variables_of(owners: Sequence[Any]) -> dict[str, Variable]:
    """What the methods of objects use, and functions that these use, by keys that are everywhere the same.

    What was installed is not looked into.
    """
    found: dict[str, Variable] = {}
    methods = [(str(number), each) for number, owner in enumerate(owners) for each in _methods(owner)]
    used = [(of, each.value) for of, method in methods for each in _variables(method, of).values()]
    for of, function in (*methods, *((of, each) for of, each in used if _is_of_script(each))):
        for key, variable in _variables(function, of).items():
            if key not in found or variable.is_assigned:
                found[key] = variable
    return found


def _methods(owner: Any) -> Iterator[FunctionType]:
    for place in (owner, *type(owner).__mro__):
        for value in vars(place).values():
            function = getattr(value, "__func__", value)
            if _is_of_script(function):
                yield function


def _is_of_script(function: Any) -> bool:
    """Whether it is a function, and was not installed."""
    if not isinstance(function, FunctionType):
        return False
    file = Path(function.__code__.co_filename)
    installed = {"site-packages", "dist-packages"}.intersection(file.parts)
    return not installed and not file.is_relative_to(sysconfig.get_path("stdlib"))


def _variables(function: FunctionType, of: str) -> dict[str, Variable]:
    """Of a function that the object with the number `of` uses, whose cells may be its own."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found: dict[str, Variable] = {}
    place: dict[str, Any] | CellType
    for kind, name, is_assigned in sorted(_names(function.__code__)):
        if kind == "GLOBAL":
            key, place = f"{function.__module__}:{name}", function.__globals__
        elif name in cells:
            key, place = f"{of}:{function.__module__}:{function.__qualname__}:{name}", cells[name]
        else:
            continue
        found[key] = Variable(name, place, is_assigned)
    return found


def _names(code: CodeType) -> set[tuple[str, str, bool]]:
    """Kind and name of what the code uses that is not local, and whether it assigns it; nested code, too."""
    found = set()
    for instruction in dis.get_instructions(code):
        action, _, kind = instruction.opname.rpartition("_")
        if kind in ("GLOBAL", "DEREF"):
            found.add((kind, str(instruction.argval), action == "STORE"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found
