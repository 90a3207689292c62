"""How many examples a property is tried on; see `tests/conftest.py` for the profiles."""

from typing import Any

from hypothesis import settings

LEAST = 10
"""Examples of a property whatever the profile."""


def fewer(part: float, **more: Any) -> settings:
    """Settings of a property whose examples take long: it is tried on this part of the profile's number."""
    return settings(max_examples=max(LEAST, round(part * settings().max_examples)), **more)
