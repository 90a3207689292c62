"""Times and durations, as pages show them."""

from datetime import UTC, datetime

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def moment(time: float) -> str:
    """A time in full."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(time: float) -> str:
    """A time for programs."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")


def duration(seconds: float) -> str:
    """A duration in its two largest units: ``2 h 5 min``."""
    rest = max(0, round(seconds))
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts)) or "0 s"


def relative(time: float, now: float) -> str:
    """A time as seen from now: ``5 min ago``, ``in 2 h``."""
    if abs(time - now) < 1:
        return "now"
    return f"{duration(now - time)} ago" if time < now else f"in {duration(time - now)}"
