"""The kinds of programs: those of this package, and those that entry points of the group `PROGRAMS` add."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

from edt_launch.core.errors import UsageError
from edt_launch.core.job_sizes import Sizes
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.program import Kind, Program
from edt_launch.launcher.programs import horovodrun, script
from edt_launch.launcher.programs.torchrun import kind as torchrun

PROGRAMS = "edt_launch.programs"
"""The group of entry points; each names an instance of `Kind`."""


@cache
def kinds() -> tuple[Kind, ...]:
    """All kinds. The last one takes every program for which no other is asked."""
    added = sorted(entry_points(group=PROGRAMS), key=lambda point: point.name)
    return (*(point.load() for point in added), horovodrun.KIND, torchrun.KIND, script.KIND)


def read(program: list[str], options: RunOptions, own: Sequence[object]) -> Program:
    """The program of a command line without options; `own` are the options that each of `kinds()` alone has.

    Raises:
        UsageError: an option makes no sense, or a file is not there.
    """
    *special, (last, its_own) = zip(kinds(), own, strict=True)
    read = {kind.name: kind.read(program, options, mine) for kind, mine in special}
    chosen = {name: program for name, program in read.items() if program is not None}
    if len(chosen) > 1:
        names = " and ".join(f"--{name}" for name in chosen)
        raise UsageError(f"{names} exclude one another: give one of them")
    result = next(iter(chosen.values()), None) or last.read(program, options, its_own)
    assert result is not None
    return result


def named(name: str) -> Kind:
    """The kind with this name, or with a framework of this name.

    Raises:
        LookupError: there is none.
    """
    for kind in kinds():
        if name in (kind.name, *kind.frameworks):
            return kind
    raise LookupError(f"no kind of program is called {name!r:.40}")


def sizes(framework: str | None, command: Sequence[str], wanted: Sizes) -> Sizes:
    """The sizes that a job of the service can have, where its user wants these.

    Raises:
        ValueError: it can have none of them.
    """
    for kind in kinds() if framework is None else (named(framework),):
        if (found := kind.sizes(framework, command, wanted)) is not None:
            return found
    return wanted


def names() -> tuple[str, ...]:
    """The names of all kinds."""
    return tuple(kind.name for kind in kinds())


def frameworks() -> tuple[str, ...]:
    """The names by which jobs of the service ask for a kind."""
    return tuple(framework for kind in kinds() for framework in kind.frameworks)
