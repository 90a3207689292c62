"""The text of a job's failure, as `edt-launch` writes it, taken apart."""

import re
from dataclasses import dataclass

CAUSE = "cause: "
FIRST_FAILURE = "first failure: "
QUOTE = "  | "
"""How the lines begin that a worker or the driver printed."""

_ORIGIN = re.compile(r"(.*) \(([^()]+, line \d+)\)", re.DOTALL)
_OF_RANK = re.compile(r"rank (\d+) ")


@dataclass(frozen=True)
class Failure:
    """A failure, in parts.

    Attributes:
        what: the exception; without one, how the worker ended and the last line that it printed.
        origin: file and line of the exception; empty if unknown.
        where: the worker that failed first and how it ended, or how the driver did.
        lines: what was printed last, the exception included.
        rank: of the worker that failed first; None if it had none.
    """

    what: str
    origin: str
    where: str
    lines: tuple[str, ...]
    rank: int | None

    @classmethod
    def read(cls, text: str) -> "Failure":
        """Take a text apart."""
        lines = text.splitlines()
        printed = tuple(line.removeprefix(QUOTE) for line in lines if line.startswith(QUOTE))
        where = _after(FIRST_FAILURE, lines) or (lines[0] if lines else "").removeprefix("edt-launch: ")
        cause = _after(CAUSE, lines)
        found = _ORIGIN.fullmatch(cause)
        what, origin = found.groups() if found else (cause, "")
        last = next((line.strip() for line in reversed(printed) if line.strip()), "")
        rank = _OF_RANK.match(_after(FIRST_FAILURE, lines))
        return cls(
            what=what or (f"{where}: {last}" if last else where),
            origin=origin,
            where=where,
            lines=(*printed, what) if what and what not in printed else printed,
            rank=int(rank[1]) if rank else None,
        )


def cause(failure: str | None) -> str:
    """What says most about a failure in one line; empty if there is no text."""
    read = Failure.read(failure or "")
    return f"{read.what} ({read.origin})" if read.origin else read.what


def _after(begin: str, lines: list[str]) -> str:
    return next((line.removeprefix(begin) for line in lines if line.startswith(begin)), "")
