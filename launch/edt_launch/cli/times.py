"""Times as people write them."""

import re
from datetime import UTC, datetime, time, timedelta

from edt_launch.cli.errors import MistakenError

_AGO = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


_LIMIT = re.compile(
    r"(?:(?P<days>[0-9]{1,4})-(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{1,2})(?::(?P<seconds>[0-9]{1,2}))?)?"
    r"|(?:(?:(?P<h>[0-9]{1,5}):)?(?P<m>[0-9]{1,7}):(?P<s>[0-9]{1,2})|(?P<only>[0-9]{1,7})))"
)
"""Slurm's forms: MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM and D-HH:MM:SS."""


def time_limit(option: str, text: str | None) -> float | None:
    """Seconds of a time limit in one of Slurm's forms; a number alone are minutes, 0 is no limit.

    Raises:
        MistakenError: it is in none of them.
    """
    if text is None:
        return None
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise MistakenError(
            f"{option} {text!r} is no time limit",
            "give minutes (90), MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS; 0 for none",
        )
    parts = {name: int(value or 0) for name, value in found.groupdict().items()}
    minutes = parts["minutes"] + parts["m"] + parts["only"]
    hours = parts["days"] * 24 + parts["hours"] + parts["h"]
    return float(hours * 3600 + minutes * 60 + parts["seconds"] + parts["s"])


def start_time(option: str, text: str | None, now: float) -> float | None:
    """The time that is meant by `2h` (from now), `22:30` (the next) or `2026-03-01T12:30`, unix seconds.

    Raises:
        MistakenError: it is none of them.
    """
    if text is None:
        return None
    if later := _AGO.fullmatch(text):
        return now + int(later[1]) * _SECONDS[later[2]]
    try:
        at = time.fromisoformat(text) if ":" in text and "-" not in text else None
        if at is None:
            return datetime.fromisoformat(text).timestamp()
        today = datetime.fromtimestamp(now, UTC).astimezone()
        found = today.replace(hour=at.hour, minute=at.minute, second=at.second, microsecond=0)
        return (found if found.timestamp() >= now else found + timedelta(days=1)).timestamp()
    except ValueError:
        raise MistakenError(
            f"{option} {text!r} is no time", "give one such as 30m, 2h, 22:30 or 2026-03-01T12:30"
        ) from None


def moment(option: str, text: str | None, now: float) -> float | None:
    """The time that is meant by `10m` or `2026-03-01T12:30`, in seconds since 1970; local if it has no zone.

    Raises:
        MistakenError: it is neither.
    """
    if text is None:
        return None
    if ago := _AGO.fullmatch(text):
        return max(0.0, now - int(ago[1]) * _SECONDS[ago[2]])
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise MistakenError(
            f"{option} {text!r} is no time", "give one such as 90s, 10m, 2h, 3d or 2026-03-01T12:30"
        ) from None
