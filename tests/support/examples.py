"""How many examples a property is tried on; see `tests/conftest.py` for the profiles."""

from typing import Any

from hypothesis import settings


def fewer(part: float, **more: Any) -> settings:
    """Settings of a property whose examples take long: so many for each one of the profile's."""
    return settings(max_examples=round(part * settings().max_examples), **more)
