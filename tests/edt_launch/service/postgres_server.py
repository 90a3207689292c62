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


@contextmanager
def running() -> Iterator[str]:
    """A server; gives the form of its URLs, with `{}` for the name of the database."""
    bin_ = programs()
    before, user = as_nobody()
    # Not pytest's folder: its path is too long for a socket, and closed to others.
    with tempfile.TemporaryDirectory(prefix="edt-pg-", dir="/tmp") as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, user, -1)
        run(
            [
                *before,
                f"{bin_}/initdb",
                "-D",
                f"{folder}/data",
                "-U",
                "edt",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "-N",
            ],
            folder,
        )
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=200"
        start = [
            *before,
            f"{bin_}/pg_ctl",
            "-D",
            f"{folder}/data",
            "-l",
            f"{folder}/log",
            "-w",
            "-o",
            options,
        ]
        run([*start, "start"], folder)
        try:
            yield f"postgresql://edt@/{{}}?host={folder}"
        finally:
            run([*before, f"{bin_}/pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop"], folder)


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
