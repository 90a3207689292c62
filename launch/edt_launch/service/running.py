"""The running service: its threads, its socket, its end."""

import contextlib
import fcntl
import importlib
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
import uvicorn
from sqlalchemy.exc import OperationalError

from edt_launch.allocation import write_atomically
from edt_launch.service.api.app import create_app
from edt_launch.service.api.context import Context
from edt_launch.service.bus import Bus
from edt_launch.service.database.migrate import NewerDatabaseError
from edt_launch.service.database.store import Store
from edt_launch.service.devices.sources import DevicesError, Surroundings, choose
from edt_launch.service.first_start import ensure_administrator, make_home
from edt_launch.service.home import Home
from edt_launch.service.inventory import Inventory
from edt_launch.service.settings import Settings

log = structlog.get_logger()

LOOP = "edt_launch.pool.loop"
"""The module of the loop, whose `run(settings, store, bus, stop)` runs the jobs."""

BACKLOG = 1024
"""Connections that may wait."""

PATIENCE = 5
"""Seconds that requests under way, and threads, have to end."""

Loop = Callable[[Settings, Store, Bus, threading.Event], None]


class StartError(Exception):
    """The service cannot start; the message says why and what to do."""


def run(settings: Settings) -> None:
    """Run the service until a signal ends it. Jobs go on without it, and the next one finds them.

    Raises:
        StartError: it cannot start, or has lost a part that it cannot do without.
    """
    set_up_logs()
    home = settings.paths
    with contextlib.ExitStack() as stack:
        stack.enter_context(_alone(home))
        store = _store(settings)
        stack.callback(store.close)
        token = ensure_administrator(store, home, time.time())
        inventory, bus = _inventory(settings, store)
        listening = stack.enter_context(_listening(settings))
        url = _url(settings, listening)
        write_atomically(home.server, json.dumps({"url": url, "pid": os.getpid()}) + "\n")
        stack.callback(home.server.unlink, missing_ok=True)
        tempfile.tempdir = str(home.incoming)  # archives may be larger than /tmp
        _greet(settings, url, store, home.token, bool(token))
        _serve(Context(settings, store, bus, time.time), inventory, listening)


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Make the folder, and keep other services out of it."""
    try:
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = home.lock.open("w")
    except OSError as error:
        raise StartError(f"--home {home.root}: {error.strerror}; name a folder you may write") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(
                f"--home {home.root}: another service is using it; stop that one, or name another folder"
            ) from None
        make_home(home)
        yield


def _store(settings: Settings) -> Store:
    shown = settings.database_url.render_as_string(hide_password=True)
    try:
        return Store.opened(settings.database_url)
    except NewerDatabaseError as error:
        raise StartError(f"{shown}: {error}") from None
    except OperationalError as error:
        raise StartError(f"the database {shown} cannot be reached: {error.orig}") from None


def _inventory(settings: Settings, store: Store) -> tuple[Inventory, Bus]:
    bus = Bus()
    try:
        source = choose(Surroundings(settings, os.environ))
        log.info("devices", source=source.name)
        inventory = Inventory(source, store, bus, time.time)
        inventory.refresh()
    except DevicesError as error:
        raise StartError(str(error)) from None
    return inventory, bus


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((settings.host, settings.port))
            listening.listen(BACKLOG)  # from now on nobody is turned away, but waits
        except OSError as error:
            raise StartError(
                f"{settings.host}:{settings.port} cannot be listened on: {error.strerror or error}; "
                "name another --port (0: any free one) or --host"
            ) from None
        yield listening


def _url(settings: Settings, listening: socket.socket) -> str:
    name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(settings.host, settings.host)
    scheme = "https" if settings.has_tls else "http"
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{listening.getsockname()[1]}"


def _greet(settings: Settings, url: str, store: Store, token: Path, has_token: bool) -> None:
    hosts = store.hosts.all()
    devices = sum(len(host.devices) for host in hosts)
    print(f"EDT serves {devices} devices of {len(hosts)} hosts at {url}", flush=True)
    if has_token:
        print(f"The administrator's token is in {token}", flush=True)
    if not settings.is_loopback and not settings.has_tls:
        log.warning(
            "tokens and code travel unencrypted",
            host=settings.host,
            next="give --tls-certificate and --tls-key",
        )


def _serve(context: Context, inventory: Inventory, listening: socket.socket) -> None:
    """Run the loop and the inventory in threads of their own, the interface in this one."""
    settings = context.settings
    server = _Server(
        uvicorn.Config(
            create_app(context),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        ),
        context.stop,
    )
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def target() -> None:
            try:
                work()
            except Exception as error:
                log.error("a part of the service has failed", exc_info=error)
                failures.append(error)
                server.should_exit = True
            context.stop.set()

        return target

    loop = loop_of(LOOP)
    threads = [
        threading.Thread(
            target=guarded(lambda: loop(settings, context.store, context.bus, context.stop)), name="edt-loop"
        ),
        threading.Thread(target=guarded(lambda: inventory.run(context.stop)), name="edt-inventory"),
    ]
    for thread in threads:
        thread.start()
    try:
        server.run(sockets=[listening])
    finally:
        context.stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise StartError(f"ended because a part has failed: {failures[0]}; its log says more")


class _Server(uvicorn.Server):
    """Ends at signals, without dying of them afterwards; streams end then, which it would wait for."""

    def __init__(self, config: uvicorn.Config, stop: threading.Event) -> None:
        super().__init__(config)
        self._stop = stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal has come; a second Ctrl-C waits for nothing."""
        self._stop.set()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def loop_of(module: str) -> Loop:
    """The loop; it is named, not imported: it builds on the service, not the other way round."""
    loop: Loop = importlib.import_module(module).run
    return loop


def set_up_logs() -> None:
    """Log to standard error: for people on a terminal, else as JSON."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
    ]
    shown = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, shown],
            foreign_pre_chain=shared,
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for noisy in ("alembic", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
