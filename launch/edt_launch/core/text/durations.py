"""Durations, as commands, pages and the live view show them."""

from itertools import pairwise

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def duration(seconds: float | None) -> str:
    """Seconds in two units at most, such as 3m 20s; a dash for None."""
    if seconds is None:
        return "-"
    whole = max(0, round(seconds))
    for (name, size), (smaller, part) in pairwise(_UNITS):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{name} {rest}{smaller}" if rest else f"{whole // size}{name}"
    return f"{whole}s"
