"""Times as people write them."""

from collections.abc import Callable
from datetime import datetime

from edt_launch.cli.errors import MistakenError
from edt_launch.core.text import written


def time_limit(option: str, text: str | None) -> float | None:
    """As `written.time_limit`; raises `MistakenError`."""
    return None if text is None else _told(written.time_limit, option, text)


def start_time(option: str, text: str | None, now: float) -> float | None:
    """As `written.start_time`; raises `MistakenError`."""
    return None if text is None else _told(written.start_time, option, text, now)


def _told(read: Callable[..., float], *given: object) -> float:
    try:
        return read(*given)
    except written.WrittenError as error:
        raise MistakenError(*error.args) from None


def moment(option: str, text: str | None, now: float) -> float | None:
    """The time that is meant by `10m` or `2026-03-01T12:30`, in seconds since 1970; local if it has no zone.

    Raises:
        MistakenError: it is neither.
    """
    if text is None:
        return None
    if ago := written.AGO.fullmatch(text):
        return max(0.0, now - int(ago[1]) * written.SECONDS[ago[2]])
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise MistakenError(
            f"{option} {text!r} is no time", "give one such as 90s, 10m, 2h, 3d or 2026-03-01T12:30"
        ) from None
