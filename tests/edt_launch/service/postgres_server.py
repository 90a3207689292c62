"""A PostgreSQL server of the system's packages, in a folder of its own, reachable by a socket alone."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SYSTEM = Path("/usr/lib/postgresql")


class NoServerError(Exception):
    """This machine cannot start one, and why."""


def programs() -> Path:
    """The folder of `initdb`, `pg_ctl` and `postgres`, the newest there is."""
    for folder in sorted(
        SYSTEM.glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]), reverse=True
    ):
        if (folder / "initdb").is_file() and (folder / "pg_ctl").is_file():
            return folder
    found = shutil.which("initdb")
    if found is None:
        raise NoServerError("PostgreSQL's initdb is not installed (Debian/Ubuntu: apt install postgresql)")
    return Path(os.path.realpath(found)).parent


def as_nobody() -> tuple[list[str], int | None]:
    """What comes before a command for it not to run as root, which the server refuses; and who runs it."""
    if os.getuid() != 0:
        return [], None
    if shutil.which("setpriv") is None:
        raise NoServerError("PostgreSQL does not run as root, and setpriv is not installed")
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        return ["setpriv", *ids], user.pw_uid
    raise NoServerError("PostgreSQL does not run as root, and there is no user postgres or nobody")


class Server:
    """A server that has been started.

    Attributes:
        url: form of its URLs, with `{}` for the name of the database.
    """

    def __init__(self, folder: Path, before: list[str]) -> None:
        self.url = f"postgresql://edt@/{{}}?host={folder}"
        self._folder = folder
        self._command = [*before, f"{programs()}/pg_ctl", "-D", f"{folder}/data"]

    def start(self) -> None:
        options = f"-k {self._folder} -c listen_addresses='' -c fsync=off -c max_connections=200"
        run([*self._command, "-l", f"{self._folder}/log", "-w", "-o", options, "start"], self._folder)

    def stop(self) -> None:
        run([*self._command, "-m", "immediate", "stop"], self._folder)


@contextmanager
def running() -> Iterator[Server]:
    """A server."""
    before, user = as_nobody()
    # Not pytest's folder: its path is too long for a socket, and closed to others.
    with tempfile.TemporaryDirectory(prefix="edt-pg-", dir="/tmp") as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, user, -1)
        options = ["-U", "edt", "-A", "trust", "-E", "UTF8", "-N"]
        run([*before, f"{programs()}/initdb", "-D", f"{folder}/data", *options], folder)
        server = Server(folder, before)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def run(command: list[str], folder: Path) -> None:
    # A server that keeps a pipe open would have us wait for ever.
    log = folder.parent / f"{folder.name}.log"
    with log.open("w+") as output:
        done = subprocess.run(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, timeout=120
        )
        output.seek(0)
        said = output.read()
    log.unlink()
    if done.returncode != 0:
        raise NoServerError(f"{' '.join(command[-4:])}: {said[-500:]}")
