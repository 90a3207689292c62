"""Times as people write them."""

import re
from datetime import datetime

from edt_launch.cli.errors import MistakenError

_AGO = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


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
