"""The accounts of this machine under which the jobs of a service's users run.

`ann=alice,bob=1002,*=*`: users of the service, and the name or number of an account for each. `*` on the left
is every user that is not named, and on the right the account of the user's own name.
"""

import contextlib
import ctypes
import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.files.walking import walk

ANY = "*"


class NoAccountError(PermissionError):
    """A user of the service has no account of this machine; the text says what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.strerror = text


@dataclass(frozen=True)
class Account:
    """An account of this machine."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def variables(self) -> dict[str, str]:
        """Those of a login."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}


class Accounts:
    """Which account each user's jobs run under; see the module.

    Raises:
        ValueError: the text makes no sense.
    """

    def __init__(self, text: str) -> None:
        parts = [part.strip().partition("=") for part in text.split(",")]
        odd = next(("".join(part) for part in parts if not all(part)), None)
        if odd is not None:
            raise ValueError(f"{odd!r}: expected USER=ACCOUNT, such as ann=alice or *=*")
        self._names: Mapping[str, str] = {user.strip(): account.strip() for user, _, account in parts}

    def of(self, user: str) -> Account:
        """The account of a user.

        Raises:
            NoAccountError: they have none, or that of root.
        """
        name = self._names.get(user, self._names.get(ANY))
        if name is None:
            raise NoAccountError(f"--job-users names no account for {user}: add {user}=ACCOUNT")
        found = _look_up(user if name == ANY else name)
        if found is None:
            raise NoAccountError(
                f"--job-users: {user} has no account on this machine: make one, or name another"
            )
        if found.uid == 0:
            raise NoAccountError(f"--job-users: {user} would be root: name another account")
        return found


def _look_up(name: str) -> Account | None:
    """The account of a name or number; one that has only a number has no groups and no home."""
    try:
        known = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        number = int(name) if name.isdecimal() else None
        return None if number is None else Account(name, number, number, (), "/", "/bin/sh")
    groups = tuple(os.getgrouplist(known.pw_name, known.pw_gid))
    return Account(known.pw_name, known.pw_uid, known.pw_gid, groups, known.pw_dir, known.pw_shell)


def give(folder: Path, account: Account) -> None:
    """Give a folder with all its content to an account, for its eyes only; nobody else may write there yet.

    Raises:
        OSError: that is not possible.
    """
    for path in (*walk(folder), folder):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    folder.chmod(0o700)


@contextlib.contextmanager
def acting_as_owner_of(folder: Path) -> Iterator[None]:
    """Reach files as the owner of a folder does, in this thread alone.

    A program may replace a folder of its job by a link to anywhere. Who follows that with the rights of the
    program's own account reaches no more than the program does.

    Raises:
        OSError: the folder is not there.
    """
    owner = folder.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        yield
        return
    libc = ctypes.CDLL(None)
    before = libc.setfsgid(owner.st_gid), libc.setfsuid(owner.st_uid)
    try:
        yield
    finally:
        libc.setfsuid(before[1])
        libc.setfsgid(before[0])
