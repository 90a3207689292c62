"""Passwords whose hashes are computed at once: the real ones take a quarter of a second on purpose."""

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher

from edt_launch.service.accounts import passwords


@pytest.fixture(scope="module", autouse=True)
def quick_passwords() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield
