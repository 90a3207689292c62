"""The imports of a program when it starts, found without running any of it.

The program's own files, which lie beside it or wherever else no packages are installed, are read and
followed; what is installed is named, to be imported ahead.
"""

import ast
import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_NAME = b"edt_hvd"

NEVER = frozenset({"mpi4py"})
"""Packages that must not be imported before a fork: this one initializes MPI."""

_ENVIRONMENT_CALLS = frozenset(
    {"environ.setdefault", "environ.update", "environ.pop", "environ.clear", "putenv", "unsetenv"}
)
_STANDARD = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


@dataclass(frozen=True)
class Import:
    """``import module`` (no names) or ``from module import names``."""

    module: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramImports:
    """What a program imports.

    Attributes:
        installed: imports of what is installed, in the order they were found.
        own: the program's own modules by name, with their files.
        sets_environment: where it changes the environment before it imports, if it does: libraries may read
            variables when they are imported, so nothing may be imported ahead. "file, line n".
        mentions_us: whether any of its files has this library's name in it, in whatever way it imports it.
    """

    installed: tuple[Import, ...]
    own: dict[str, Path]
    sets_environment: str | None
    mentions_us: bool = True


def imports_of(tree: ast.Module, package: str = "") -> list[Import]:
    """The imports that a module executes when it is imported itself: not those in its functions.

    Args:
        tree: the module.
        package: the name of its package, for relative imports; empty if it is in none.
    """
    found: list[Import] = []
    for statement in _executed(tree.body):
        if isinstance(statement, ast.Import):
            found += [Import(alias.name) for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            module = _absolute(statement, package)
            if module:
                found.append(Import(module, tuple(alias.name for alias in statement.names)))
    return found


def sets_environment(tree: ast.Module) -> int | None:
    """The line on which a module changes the environment although it imports libraries later; else None."""
    changed_at: int | None = None
    for statement in _executed(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            if changed_at is not None and _is_library(statement):
                return changed_at
        elif changed_at is None and _changes_environment(statement):
            changed_at = statement.lineno
    return None


def _is_library(statement: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.level > 0 or _top(statement.module or "") not in sys.stdlib_module_names
    return any(_top(alias.name) not in sys.stdlib_module_names for alias in statement.names)


def _executed(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run with a module: those in `if` and `try`, too, but none for type checkers."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                yield from _executed(statement.orelse)
                continue
        yield statement
        for field in ("body", "orelse", "handlers", "finalbody"):
            for inner in getattr(statement, field, ()):
                yield from _executed(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _changes_environment(statement: ast.stmt) -> bool:
    targets: list[ast.expr] = []
    match statement:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            pass
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            targets = [target]
        case ast.Expr(value=ast.Call(func=function)):
            name = ast.unparse(function)
            return any(name == call or name.endswith(f".{call}") for call in _ENVIRONMENT_CALLS)
    return any(
        isinstance(target, ast.Subscript) and _last(ast.unparse(target.value)) == "environ"
        for target in targets
    )


def _absolute(statement: ast.ImportFrom, package: str) -> str | None:
    """The absolute name of the module of a `from`; None if it leads out of the package."""
    if statement.level == 0:
        return statement.module
    parts = package.split(".") if package else []
    if statement.level > len(parts):
        return None
    kept = parts[: len(parts) - statement.level + 1]
    return ".".join([*kept, *([statement.module] if statement.module else [])])


def find(program: Path, package: str, path: Sequence[str]) -> ProgramImports:
    """Follow a program's imports.

    Files that cannot be read or parsed are passed over: the program will say what is wrong with them.

    Args:
        program: its file.
        package: the package it is in when it is run as a module.
        path: `sys.path` as the program will see it.
    """
    roots = [Path(entry) for entry in path if not is_installed(entry)]
    installed: dict[Import, None] = {}
    own: dict[str, Path] = {}
    environment: str | None = None
    mentions_us = False
    todo = [(program, package)]
    for file, inside in todo:
        try:
            source = file.read_bytes()
            mentions_us = mentions_us or _NAME in source
            tree = ast.parse(source)
        except (OSError, SyntaxError, ValueError):
            continue
        line = sets_environment(tree)
        if line is not None and environment is None:
            environment = f"{file}, line {line}"
        for found in imports_of(tree, inside):
            files = own_files(found, roots)
            if not files and _top(found.module) not in NEVER:
                installed[found] = None
            new = {name: where for name, where in files.items() if name not in own}
            own |= new
            todo += [(where, _package_of(name, where)) for name, where in new.items()]
    return ProgramImports(tuple(installed), own, environment, mentions_us)


def own_files(wanted: Import, roots: Sequence[Path]) -> dict[str, Path]:
    """The program's own files that an import runs, by module; empty if it is of something installed.

    Args:
        wanted: the import.
        roots: folders with the program's own modules. Elsewhere they are found if they are installed as
            links to where they are developed.
    """
    top = _top(wanted.module)
    root = next((root for root in roots if _module_file(root / top)), None) or _root_of(top, roots)
    if root is None:
        return {}
    parts = wanted.module.split(".")
    names = [".".join(parts[: n + 1]) for n in range(len(parts))]
    names += [f"{wanted.module}.{name}" for name in wanted.names]
    files = {name: _module_file(root.joinpath(*name.split("."))) for name in names}
    return {name: file for name, file in files.items() if file is not None}


def _root_of(top: str, roots: Sequence[Path]) -> Path | None:
    """The folder of a module that is the program's own: a folder without `__init__`, or a linked one."""
    try:
        spec = importlib.util.find_spec(top)  # runs nothing: it is in no package
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return next((root for root in roots if (root / top).is_dir()), None)
    if not isinstance(spec.loader, importlib.machinery.SourceFileLoader) or is_installed(spec.origin):
        return None
    file = Path(spec.origin)
    return file.parent.parent if file.name == "__init__.py" else file.parent


def is_installed(path: str) -> bool:
    """Whether a path is among installed packages or the standard library."""
    parts = Path(path).parts
    standard = any(Path(path).is_relative_to(folder) for folder in _STANDARD) or path.endswith(".zip")
    return standard or "site-packages" in parts or "dist-packages" in parts


def _module_file(stem: Path) -> Path | None:
    """The source of a module or package without its ending."""
    return next(
        (file for file in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")) if file.is_file()), None
    )


def _package_of(name: str, file: Path) -> str:
    return name if file.name == "__init__.py" else name.rpartition(".")[0]


def _top(module: str) -> str:
    return module.partition(".")[0]


def _last(name: str) -> str:
    return name.rpartition(".")[2]
