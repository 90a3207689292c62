from pathlib import Path

import pytest

from worlds import empty_database


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    return empty_database(request, tmp_path)
