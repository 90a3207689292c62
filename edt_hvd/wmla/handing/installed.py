"""What a script and its modules set in installed ones: ``PIL.ImageFile.LOAD_TRUNCATED_IMAGES = True``.

Assignments are looked for in the sources, so executors are given them alone, whatever else is there. What
calls set (``install_opener(opener)``) is not seen.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from edt_hvd.wmla.handing.pickling import Place, dumps, loads

OF_A_PROCESS = ("__main__", "builtins", "edt_hvd", "os", "posixpath", "sys")
"""Packages in which each process has its own."""


@dataclass(frozen=True)
class Setting:
    """An attribute of a module, or of an object in it.

    Attributes:
        place: which.
        content: its value, pickled.
    """

    place: Place
    content: bytes

    def adopt(self) -> None:
        """Set it in this process; where that fails, that is a warning."""
        module, names = self.place
        try:
            owner = functools.reduce(getattr, names[:-1], importlib.import_module(module))
            setattr(owner, names[-1], loads(self.content))
        except Exception as error:  # noqa: BLE001 - modules and objects raise what they like
            told = f"{_text(self.place)} cannot be set in an executor as the script has set it: {error}"
            warnings.warn(told, stacklevel=2)


def settings(own: Iterable[str]) -> list[Setting]:
    """What is assigned in installed modules, as it is now. Warns of what cannot be sent.

    Args:
        own: names of the script's modules, and of itself.
    """
    names = set(own)
    found = {place: value for name in sorted(names) for place, value in _assigned(sys.modules[name], names)}
    made = []
    for place, value in found.items():
        try:
            made.append(Setting(place, dumps(value, {})))
        except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
            told = f"{_text(place)} is not sent to the executors, which have it as it was: {error}"
            warnings.warn(told, stacklevel=2)
    return made


def _text(place: Place) -> str:
    return ".".join((place[0], *place[1]))


def _assigned(module: ModuleType, own: Collection[str]) -> Iterator[tuple[Place, Any]]:
    """What the source of a module assigns in installed ones, also in functions, and the present values."""
    try:
        tree = ast.parse(Path(vars(module).get("__file__") or "").read_bytes())
    except (OSError, SyntaxError):  # has been removed or edited meanwhile
        return
    variables = {**dict(_imported(tree)), **vars(module)}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    for target in sorted({ast.unparse(node) for node in nodes if isinstance(node.ctx, ast.Store)}):
        within, names = _place(target.split("."), variables)
        if not names or within in own or within.partition(".")[0] in OF_A_PROCESS:
            continue
        with contextlib.suppress(Exception):  # it is not there, or an object does not want to tell
            yield (within, names), _value(within, names)


def _imported(tree: ast.AST) -> Iterator[tuple[str, Any]]:
    """What imports bind names to, as far as it has been imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.name if each.asname else each.name.partition(".")[0]
                yield each.asname or name, sys.modules.get(name)
        elif isinstance(node, ast.ImportFrom) and node.module in sys.modules and not node.level:
            for each in node.names:
                yield each.asname or each.name, vars(sys.modules[node.module]).get(each.name)


def _place(target: Sequence[str], variables: Mapping[str, Any]) -> Place:
    """The innermost module of a dotted name, empty if it begins with something else, and the rest."""
    within, root = "", variables.get(target[0])
    if isinstance(root, type):
        return root.__module__, (*root.__qualname__.split("."), *target[1:])
    for number, name in enumerate(target):
        value = variables.get(name)
        if not (isinstance(value, ModuleType) and sys.modules.get(value.__name__) is value):
            return within, tuple(target[number:]) if within else ()
        within, variables = value.__name__, vars(value)
    return within, ()


def _value(module: str, names: tuple[str, ...]) -> Any:
    owner = functools.reduce(getattr, names[:-1], cast("Any", sys.modules[module]))
    return inspect.getattr_static(owner, names[-1]) if isinstance(owner, type) else getattr(owner, names[-1])
