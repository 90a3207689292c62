"""How many examples a property is tried on; see `tests/conftest.py` for the profiles."""

from typing import Any

from hypothesis import settings

MOST = 1000
"""As many examples as a profile has at most for properties that are tried on a part of them."""


def fewer(part: float, **more: Any) -> settings:
    """Settings of a property whose examples take long: it is tried on this part of the profile's number."""
    return settings(max_examples=round(part * min(settings().max_examples, MOST)), **more)
