"""The end of a job's log or lines around a place of it, and what a search has found."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlencode

from edt_launch.service.files import rank_lines
from edt_launch.service.files.log_query import LogQuery
from edt_launch.service.jobs.schemas import Job
from edt_launch.service.jobs.states import ENDED
from edt_launch.service.web import wording
from edt_launch.service.web.ansi import Piece, pieces

Json = Mapping[str, Any]

MAX_RANKS = 256
"""Ranks that are offered."""

TAIL = 200
"""Lines of a log that a page begins with."""

LEVELS: Mapping[str, str] = {"": "any", "warning": "warnings and errors", "error": "errors"}
"""The least level of lines that are looked for, and how that is shown."""


@dataclass(frozen=True)
class Excerpt:
    """Lines of a log that follow each other, or those of them that are a rank's.

    Attributes:
        start: where the first begins, in bytes.
        lines: without their ends, and of one rank without that; each with the place where it begins.
        at: the place that they are around; None if they are the last ones.
        earlier, later: places that are shown next in either direction, if they are around one.
    """

    start: int
    lines: Sequence[tuple[int, bytes]]
    at: int | None = None
    earlier: int = 0
    later: int = 0

    @classmethod
    def of(cls, start: int, lines: Iterable[bytes], rank: int | None = None) -> "Excerpt":
        """Whole lines of a log, the first of which begins at `start`; only those of a `rank`, if given."""
        selected = rank_lines.selected(rank)
        found, at = [], start
        for line in lines:
            if (text := selected(line)) is not None:
                found.append((at, text))
            at += len(line) + 1
        return cls(start, found)

    def end(self, count: int) -> "Excerpt":
        """The last lines of these, so many."""
        lines = self.lines[-count:]
        return replace(self, start=lines[0][0] if lines else self.start, lines=lines)


@dataclass(frozen=True)
class LogLine:
    """A line in pieces of one look each, and the page that shows it among its neighbours."""

    pieces: Sequence[Piece]
    address: str
    is_asked_for: bool


@dataclass(frozen=True)
class Hit:
    """A line that was found, and the page that shows it among its neighbours."""

    text: str
    address: str


@dataclass(frozen=True)
class Logs:
    """The end of a log, or lines around a place of it.

    Attributes:
        rank: whose log it is, as the form has it: a number, `launcher`, or empty for all.
        error: what is wrong with what is searched for; empty if nothing is.
        at: the place, in bytes; None for the end.
        wanted: what is searched for; `hits` are the lines that are it, None if nothing is.
        wraps: whether long lines are wrapped; `other_wrap` is the address of the opposite.
        more: the address of further hits; None at the end.
        follow: the address of all from `start` on, as it comes, whatever the rank; None if the log is not
            followed.
        begin: what the lines of the rank begin with, as a regular expression; empty for all.
        place: what an address of a line begins with, before the line's place.
    """

    rank: str
    ranks: Sequence[int]
    start: int
    lines: Sequence[LogLine]
    at: int | None
    wanted: LogQuery
    wraps: bool
    other_wrap: str
    hits: Sequence[Hit] | None
    more: str | None
    follow: str | None
    begin: str
    whole: str
    place: str
    earlier: str | None
    later: str | None
    error: str
    levels: ClassVar[Mapping[str, str]] = LEVELS


def logs(
    job: Job,
    wanted: LogQuery,
    excerpt: Excerpt,
    found: Json | None,
    *,
    wraps: bool = True,
    error: str = "",
) -> Logs:
    """The tab; `found` is REST's answer to the search for what is wanted, if anything is."""
    own = f"/jobs/{job.id}"
    of_rank = {} if wanted.rank is None else {"rank": wanted.rank}
    here = {"tab": "logs", **of_rank, **({} if wraps else {"wrap": "0"})}
    sought = _sought(wanted)
    is_around = excerpt.at is not None

    def page(**more: Any) -> str:
        return f"{own}?{urlencode({**here, **more})}"

    following = found["next"] if found else None
    is_followed = not is_around and job.state not in ENDED
    rest = f"/api/v1/jobs/{job.id}/logs"
    return Logs(
        rank="launcher" if wanted.launcher else "" if wanted.rank is None else str(wanted.rank),
        ranks=sorted({*range(min(job.max, MAX_RANKS)), *([] if wanted.rank is None else [wanted.rank])}),
        start=excerpt.start,
        lines=_lines(excerpt, page),
        at=excerpt.at,
        wanted=wanted,
        wraps=wraps,
        other_wrap=page(**sought, **({"at": excerpt.at} if is_around else {}), wrap="0" if wraps else ""),
        hits=_hits(found["hits"], page) if found else None,
        more=page(**sought, after=following) if following is not None else None,
        follow=f"{rest}?follow=1" if is_followed else None,
        begin="" if wanted.rank is None else rank_lines.of(wanted.rank).pattern.decode(),
        whole=f"{rest}?{urlencode(of_rank)}" if of_rank else rest,
        place=f"{page()}&at=",
        earlier=page(at=excerpt.earlier if is_around else excerpt.start) if excerpt.start else None,
        later=page(at=excerpt.later) if is_around else None,
        error=error,
    )


def _sought(wanted: LogQuery) -> dict[str, str]:
    """What is searched for, as an address has it."""
    fields = {
        "text": wanted.text,
        "level": wanted.level,
        "since": wording.utc(wanted.since),
        "until": wording.utc(wanted.until),
        "rank": "launcher" if wanted.launcher else "",
    }
    return {name: value for name, value in fields.items() if value}


def _hits(found: Iterable[Json], page: Callable[..., str]) -> list[Hit]:
    return [Hit(wording.plain(hit["text"].encode(errors="replace")), page(at=hit["offset"])) for hit in found]


def _lines(excerpt: Excerpt, page: Callable[..., str]) -> list[LogLine]:
    asked_for = max((offset for offset, _ in excerpt.lines if offset <= (excerpt.at or 0)), default=None)
    return [
        LogLine(pieces(line), page(at=offset), excerpt.at is not None and offset == asked_for)
        for offset, line in excerpt.lines
    ]
