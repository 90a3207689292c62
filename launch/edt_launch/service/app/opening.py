"""What a service takes hold of before it serves: its folder, its database, its port; and why it cannot."""

import contextlib
import os
import resource
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from edt_launch.core.errors import SourceError
from edt_launch.core.text.masking import without_passwords
from edt_launch.service.app.database_binding import ForeignError
from edt_launch.service.app.first_start import SharedFolderError, make_home
from edt_launch.service.app.home import Home
from edt_launch.service.app.settings import Settings
from edt_launch.service.db.engine import AWAY
from edt_launch.service.db.locking import lock
from edt_launch.service.db.migrate import NewerDatabaseError, OlderDatabaseError
from edt_launch.service.db.sole_user import InUseError
from edt_launch.service.http.listening import BACKLOG, Connections, Listener


class StartError(Exception):
    """The service cannot start; the message says why and what to do."""


@contextlib.contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Around everything that can fail before the service serves; raises `StartError` if it did."""
    database = without_passwords(settings.database_url.render_as_string(hide_password=True))
    try:
        yield
    except (SourceError, SharedFolderError) as error:
        raise StartError(str(error)) from None
    except (NewerDatabaseError, OlderDatabaseError, InUseError, ForeignError) as error:
        raise StartError(f"the database {database}: {error}") from None
    except AWAY as error:
        raise StartError(f"the database {database} cannot be reached: {_cause(error)}") from None
    except SQLAlchemyError as error:
        raise StartError(
            f"the database {database} cannot be used: {_cause(error)}; name another --database"
        ) from None
    except ssl.SSLError as error:
        raise StartError(
            f"--tls-certificate {settings.tls_certificate} and --tls-key {settings.tls_key} are no PEM "
            f"files, or do not fit together: {error.reason}"
        ) from None
    except OSError as error:
        path = error.filename or settings.home
        raise StartError(
            f"{path}: {error.strerror or error}; mend that, or name another file or folder (--home "
            f"{settings.home})"
        ) from None


def _cause(error: SQLAlchemyError) -> str:
    return without_passwords(str(getattr(error, "orig", None) or error))


def check_job_users(settings: Settings) -> None:
    """See that jobs can run under accounts of their own; from now on new files are for our own eyes only.

    Raises:
        StartError: they cannot.
    """
    if settings.job_users is None:
        return
    if os.geteuid() != 0:
        raise StartError("--job-users: only a service that root runs can start jobs as others; leave it out")
    settings.paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    needed = {"--home": settings.paths.root.parent, "Python": Path(sys.executable)}
    needed["Python itself"] = Path(os.path.realpath(sys.executable))
    for what, path in needed.items():
        for folder in (path, *path.parents):
            if not folder.stat().st_mode & 0o001:
                raise StartError(
                    f"--job-users: other accounts do not get to {path} ({what}) through {folder}: "
                    "move it to a folder that all may enter, such as one in /var/lib or /opt"
                )
    os.umask(0o077)


@contextlib.contextmanager
def alone(home: Home, *, has_job_users: bool = False) -> Iterator[None]:
    """Make the folder, and keep other services out of it."""
    home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        held = lock(home.lock)
    except BlockingIOError:
        raise StartError(
            f"--home {home.root}: another service is using it; stop that one, or name another folder"
        ) from None
    with held:
        make_home(home, has_job_users=has_job_users)
        yield


@contextlib.contextmanager
def listening_socket(settings: Settings) -> Iterator[Listener]:
    """A socket that takes connections in, though nobody answers yet."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends small answers at once only if it sees that this is TCP.
    with Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        listening.connections = Connections.within(
            settings.max_connections, settings.max_connections_per_address, descriptors
        )
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((settings.host, settings.port))
            listening.listen(BACKLOG)  # from now on nobody is turned away, but waits
        except (OSError, TypeError, UnicodeError) as error:  # the last two: the host is no name
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise StartError(
                f"{settings.host}:{settings.port} cannot be listened on: {reason}; "
                "name another --port (0: any free one) or --host"
            ) from None
        yield listening
