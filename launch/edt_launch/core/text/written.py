"""Time limits, start times, arrays and lists as people write them, in commands and forms."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo


class WrittenError(ValueError):
    """What was written is not understood; the arguments are the reason and what to write instead."""


AGO = re.compile(r"([0-9]{1,9})([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_LIMIT = re.compile(
    r"(?:(?P<days>[0-9]{1,4})-(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{1,2})(?::(?P<seconds>[0-9]{1,2}))?)?"
    r"|(?:(?:(?P<h>[0-9]{1,5}):)?(?P<m>[0-9]{1,7}):(?P<s>[0-9]{1,2})|(?P<only>[0-9]{1,7})))"
)
"""Slurm's forms: MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM and D-HH:MM:SS."""


def time_limit(option: str, text: str) -> float:
    """Seconds of a time limit in one of Slurm's forms; a number alone are minutes, 0 is no limit.

    Raises:
        WrittenError: it is in none of them.
    """
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise WrittenError(
            f"{option} {text!r} is no time limit",
            "give minutes (90), MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS; 0 for none",
        )
    parts = {name: int(value or 0) for name, value in found.groupdict().items()}
    minutes = parts["minutes"] + parts["m"] + parts["only"]
    hours = parts["days"] * 24 + parts["hours"] + parts["h"]
    return float(hours * 3600 + minutes * 60 + parts["seconds"] + parts["s"])


def start_time(option: str, text: str, now: float, zone: tzinfo | None = None) -> float:
    """The time that is meant by `2h` (from now), `22:30` (the next) or `2026-03-01T12:30`, unix seconds.

    Without a zone of its own, the time is in `zone`; None: the local one.

    Raises:
        WrittenError: it is none of them.
    """
    if later := AGO.fullmatch(text):
        return now + int(later[1]) * SECONDS[later[2]]
    try:
        at = time.fromisoformat(text) if ":" in text and "-" not in text else None
        if at is None:
            given = datetime.fromisoformat(text)
            return (given if given.tzinfo else given.replace(tzinfo=zone)).timestamp()
        today = datetime.fromtimestamp(now, UTC).astimezone(zone)
        found = today.replace(hour=at.hour, minute=at.minute, second=at.second, microsecond=0)
        return (found if found.timestamp() >= now else found + timedelta(days=1)).timestamp()
    except ValueError:
        raise WrittenError(
            f"{option} {text!r} is no time", "give one such as 30m, 2h, 22:30 or 2026-03-01T12:30"
        ) from None


MAX_JOBS = 1000
"""Jobs of an array."""

_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


@dataclass(frozen=True)
class Indices:
    """Numbers of the jobs of an array, ascending, and how many of them may run at a time; None for all."""

    numbers: tuple[int, ...]
    limit: int | None


def indices(option: str, text: str) -> Indices:
    """The indices that such as 1-20, 1,3,5, 0-30:10 and 1-20%4 mean.

    Raises:
        WrittenError: they mean none, or more than `MAX_JOBS`.
    """
    listed, percent, limit = text.partition("%")
    expected = "give one such as 1-20, 1,3,5, 0-30:10, or 1-20%4 for at most 4 at a time"
    if percent and not re.fullmatch("[1-9][0-9]{0,5}", limit):
        raise WrittenError(f"{option} {text}: {limit!r} is no number of jobs", expected)
    found: set[int] = set()
    for part in listed.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise WrittenError(f"{option} {text}: {part!r} is neither an index nor a range", expected)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or not step:
            raise WrittenError(f"{option} {text}: {part!r} has no indices", expected)
        chosen = range(first, last + 1, step)
        if len(found) + len(chosen) > MAX_JOBS:
            raise WrittenError(f"{option} {text} has more than {MAX_JOBS} jobs", "submit several arrays")
        found.update(chosen)
    return Indices(tuple(sorted(found)), int(limit) if percent else None)


def words(text: str | None) -> list[str] | None:
    """The words of a list with commas between; None for None."""
    return None if text is None else [word for part in text.split(",") if (word := part.strip())]
