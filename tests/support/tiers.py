"""What `make test` runs, and what only `make test-all` does."""

from typing import Any

import pytest


def full(*values: object, **more: Any) -> Any:
    """A parameter set that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.full, **more)
