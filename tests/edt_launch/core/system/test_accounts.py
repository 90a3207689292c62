"""The accounts under which jobs of users run."""

import os
import threading
from pathlib import Path

import pytest

from edt_launch.core.system.accounts import Accounts, NoAccountError, acting_as_owner_of, give

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")


def test_users_have_the_accounts_that_are_named() -> None:
    accounts = Accounts("ann=nobody, bob=54321,*=*")
    assert accounts.of("ann").name == "nobody"
    assert accounts.of("ann").gid in accounts.of("ann").groups
    assert (accounts.of("bob").uid, accounts.of("bob").groups) == (54321, ())
    assert accounts.of("daemon").name == "daemon"


@pytest.mark.parametrize(
    "text, user, reason",
    [
        ("ann=nobody", "bob", "names no account for bob"),
        ("*=*", "no-such-user", "no account on this machine"),
        ("*=*", "root", "would be root"),
        ("ann=0", "ann", "would be root"),
    ],
)
def test_who_has_no_account_is_told(text: str, user: str, reason: str) -> None:
    with pytest.raises(NoAccountError, match=reason):
        Accounts(text).of(user)


@root
def test_acting_as_another_reaches_what_they_reach_in_this_thread_alone(tmp_path: Path) -> None:
    secret, own = tmp_path / "secret", tmp_path / "own"
    secret.write_text("x")
    secret.chmod(0o600)
    own.mkdir()
    (own / "link").symlink_to(secret)
    give(own, Accounts("ann=54321").of("ann"))
    assert (own / "link").lstat().st_uid == 54321
    assert secret.stat().st_uid == 0
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
        if folder.name.startswith("pytest-of"):
            break
    others: list[str] = []
    acts, has_read = threading.Event(), threading.Event()

    def read() -> None:
        acts.wait(30)
        others.append(secret.read_text())
        has_read.set()

    thread = threading.Thread(target=read)
    thread.start()
    with acting_as_owner_of(own):
        acts.set()
        with pytest.raises(PermissionError):
            secret.read_text()
        (own / "made").touch()
        assert has_read.wait(30)
    thread.join()
    assert others == [secret.read_text()]
    assert (own / "made").stat().st_uid == 54321
