"""Variables of the script that the methods of objects use: globals, and those of functions around them."""

import dis
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeGuard

import edt_hvd

MISSING = object()
"""Stands for the value of a variable that has none."""


@dataclass(frozen=True)
class Variable:
    """A variable, which need not have a value.

    Attributes:
        name: as the code has it, without the module that it is in.
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
    for number, owner in enumerate(owners):
        functions = list(_methods(owner))
        seen = set(functions)
        for function in functions:  # it grows meanwhile
            for key, variable in _variables(function, str(number)).items():
                if key not in found or variable.is_assigned:
                    found[key] = variable
                if _is_function_of_script(variable.value) and variable.value not in seen:
                    seen.add(variable.value)
                    functions.append(variable.value)
    return found


def _methods(owner: Any) -> Iterator[FunctionType]:
    for place in (owner, *type(owner).__mro__):
        for value in vars(place).values():
            function = getattr(value, "__func__", value)
            if _is_function_of_script(function):
                yield function


def _is_function_of_script(value: Any) -> TypeGuard[FunctionType]:
    return isinstance(value, FunctionType) and not _is_installed(value.__code__.co_filename)


def _is_module_of_script(value: Any) -> TypeGuard[ModuleType]:
    file = getattr(value, "__file__", None)
    return isinstance(value, ModuleType) and file is not None and not _is_installed(file)


def _is_installed(file: str) -> bool:
    folders = (sysconfig.get_path("stdlib"), *edt_hvd.__path__)
    parts = {"site-packages", "dist-packages"}.intersection(Path(file).parts)
    return bool(parts) or any(Path(file).is_relative_to(folder) for folder in folders)


def _variables(function: FunctionType, of: str) -> dict[str, Variable]:
    """Of a function that the object with the number `of` uses, whose cells may be its own."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found: dict[str, Variable] = {}
    place: dict[str, Any] | CellType
    for kind, (name, *names), is_assigned in sorted(_names(function.__code__)):
        if kind == "GLOBAL":
            key, place = f"{function.__module__}:{name}", function.__globals__
        elif name in cells:
            key, place = f"{of}:{function.__module__}:{function.__qualname__}:{name}", cells[name]
        else:
            continue
        variable = Variable(name, place, is_assigned)
        for inner in names:  # of modules; other objects' attributes are no variables
            module = variable.value
            if not _is_module_of_script(module):
                break
            key, variable = f"{module.__name__}:{inner}", Variable(inner, vars(module), is_assigned)
        else:
            found[key] = variable
    return found


def _names(code: CodeType) -> set[tuple[str, tuple[str, ...], bool]]:
    """Kind and dotted name of what code uses that is not local, and if it is assigned; nested code, too."""
    found: set[tuple[str, tuple[str, ...], bool]] = set()
    names: tuple[str, ...] = ()
    kind, is_copied = "", False
    for instruction in dis.get_instructions(code):
        action, _, what = instruction.opname.rpartition("_")
        is_stored = action == "STORE"
        match what:
            case "GLOBAL" | "DEREF":
                kind, names = what, (str(instruction.argval),)
            case "ATTR" | "METHOD" if names:
                names = (*names, str(instruction.argval))
                is_stored |= is_copied
            case "ARG":  # what the next instruction has is long
                continue
            case "COPY":  # ``names.name += 1`` loads of the copy what it stores into the other
                is_copied = True
                continue
            case _:
                names = ()
        if names:
            found.add((kind, names, is_stored))
        is_copied = False
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found
