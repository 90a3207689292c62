from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from edt_launch.service import passwords


@pytest.fixture(scope="module", autouse=True)
def quick_passwords() -> Iterator[None]:
    """What a password's hash costs is not what these tests are about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Pages see no difference between databases."""
    return f"sqlite:///{tmp_path}/edt.db"
