import asyncio
from types import SimpleNamespace

import pytest

from edt_launch.service.accounts import logon, passwords
from edt_launch.service.accounts.lockout import FREE
from edt_launch.service.accounts.logon import PasswordLogon
from edt_launch.service.errors import LockedError, UnauthorizedError
from world import World


@pytest.fixture
def checked(world: World, monkeypatch: pytest.MonkeyPatch) -> PasswordLogon:
    world.store.accounts.set_password("ann", passwords.hash_of("correct horse"), 0.0)
    monkeypatch.setattr(logon, "time", SimpleNamespace(monotonic=lambda: 1.0))  # stands still
    return PasswordLogon(world.context)


def check(logon: PasswordLogon, name: str, password: str, address: str = "a") -> str:
    return asyncio.run(logon.check(name, password, address))


def test_the_right_password_is_known(world: World, checked: PasswordLogon) -> None:
    assert check(checked, "ann", "correct horse") == world.store.accounts.password("ann")


@pytest.mark.parametrize("name", ["ann", "nobody"])
def test_what_is_wrong_is_refused_and_then_locked(checked: PasswordLogon, name: str) -> None:
    for _ in range(FREE):
        with pytest.raises(UnauthorizedError, match="unknown"):
            check(checked, name, "wrong")
    with pytest.raises(LockedError, match="locked for 1 s"):
        check(checked, name, "correct horse")


def test_another_address_is_not_locked(checked: PasswordLogon) -> None:
    for _ in range(FREE):
        with pytest.raises(UnauthorizedError):
            check(checked, "ann", "wrong")
    assert check(checked, "ann", "correct horse", "b")
