from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher

from edt_launch.service.accounts import passwords
from worlds import database_url, postgresql, store, world

__all__ = ["database_url", "postgresql", "store", "world"]


@pytest.fixture(scope="session", autouse=True)
def _quick_hashes() -> Iterator[None]:
    """Hashes of passwords that take little time, in processes of the tests alone."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield
