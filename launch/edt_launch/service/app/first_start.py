"""What a service needs before it can be used: its folder, an administrator, and their token."""

import contextlib
import re
import stat
from pathlib import Path

from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.system.user_name import user_name
from edt_launch.service.accounts import tokens
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.home import Home
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.db.store import Store
from edt_launch.service.files.archives.deleting import delete_folder
from edt_launch.service.names import USER

LOCAL_TOKEN = "local"
"""Name of the token in the service's folder."""


class SharedFolderError(Exception):
    """The service's folder is one that others use, too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"--home {folder} is for everybody's use; name a folder of the service's own in it")


def make_home(home: Home, *, has_job_users: bool = False) -> None:
    """Make the service's folder, for its owner's eyes only, and throw away what a crash has left half done.

    With `has_job_users` other accounts get through it to the folders of jobs and of data, and no further.

    Raises:
        SharedFolderError: it is one such as /tmp, which everybody uses.
    """
    home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = home.root.stat().st_mode
    if mode & stat.S_ISVTX:
        raise SharedFolderError(home.root)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        home.root.chmod(0o700)
    _make_folders(home)
    if has_job_users:
        for path in home.root.iterdir():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
        home.data.chmod(0o755)
        for folder in (home.jobs, home.root):
            folder.chmod(0o711)


def _make_folders(home: Home) -> None:
    for folder in (home.incoming, home.trash):
        delete_folder(folder)
        folder.mkdir(exist_ok=True)
    for folder in (home.jobs, home.data, home.searches, home.definitions):
        folder.mkdir(exist_ok=True)


def this_user() -> str:
    """Name of who runs the service, as far as it can be a user's name here."""
    name = user_name()
    return name if re.fullmatch(USER, name) else "admin"


def ensure_administrator(store: Store, home: Home, now: float) -> str:
    """Have whoever runs the service be an administrator whose token is in `home.token`; returns the token."""
    name = this_user()
    store.accounts.add_user(UserRecord(name, is_admin=True, created=now))
    store.shares.add_missing(ShareRecord(name))
    known = ""
    with contextlib.suppress(OSError):
        known = home.token.read_text(encoding="utf-8", errors="replace").strip()
    bearer = tokens.bearer(store.accounts, known, now)
    if bearer is not None and bearer[0].is_admin:
        return known
    for old in store.accounts.tokens(name):
        if old.name == LOCAL_TOKEN:
            store.accounts.revoke(old.id, name, now, only=True)  # it is lost, and no secret of others'
    token, _ = tokens.issue(store.accounts, name, LOCAL_TOKEN, now)
    write_atomically(home.token, token + "\n", mode=0o600)
    return token
