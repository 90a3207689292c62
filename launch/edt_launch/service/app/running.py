"""The running service: its threads, its socket, its end."""

import contextlib
import gc
import json
import logging
import os
import resource
import shlex
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.network import public_name
from edt_launch.cluster.sources import choose
from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.run_options import RunOptions
from edt_launch.core.scripts import command_problem, script_problem
from edt_launch.core.system.certificates import ensure_certificate
from edt_launch.core.system.user_name import user_name
from edt_launch.launcher.transports.ssh import Ssh
from edt_launch.service.app import notices, retention
from edt_launch.service.app.application import create_app
from edt_launch.service.app.context import Context
from edt_launch.service.app.database_binding import bind
from edt_launch.service.app.extensions import extensions
from edt_launch.service.app.first_start import ensure_administrator
from edt_launch.service.app.logs.log_filter import RepeatFilter
from edt_launch.service.app.logs.log_text import in_visible_characters
from edt_launch.service.app.notices import Notifier
from edt_launch.service.app.opening import StartError, alone, check_job_users, explained, listening_socket
from edt_launch.service.app.settings import Settings
from edt_launch.service.bus import Bus
from edt_launch.service.cluster.inventory import INTERVAL, Inventory
from edt_launch.service.cluster.losses import Losses, SshCheck
from edt_launch.service.cluster.machines import Machines
from edt_launch.service.db.engine import AWAY, Database
from edt_launch.service.db.sole_user import InUseError, SoleUser
from edt_launch.service.db.store import Store
from edt_launch.service.experiments import definitions
from edt_launch.service.experiments.searches.controller import Controller
from edt_launch.service.http.listening import BACKLOG, Connections
from edt_launch.service.http.protocol import KEEP_ALIVE, TimedProtocol
from edt_launch.service.http.sites import names_of_this_machine
from edt_launch.service.jobs import answers
from edt_launch.service.jobs.loop import loop
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.submission import remove_strays

log = structlog.get_logger()

LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The loopback address of those that mean all interfaces."""

FILES = 65536
"""Open files that the service may have, if the system allows it: each connection is one."""

SWITCH = 0.0005
"""Seconds after which a thread that computes, with an archive for instance, lets another one go on."""

PATIENCE = 5
"""Seconds that requests under way, and threads, have to end."""


def run(settings: Settings) -> None:
    """Run the service until a signal ends it. Jobs go on without it, and the next one finds them.

    Raises:
        StartError: it cannot start, or has lost a part that it cannot do without.
    """
    set_up_logs()
    raise_file_limit()
    sys.setswitchinterval(SWITCH)
    home, bus = settings.paths, Bus()
    with contextlib.ExitStack() as stack:
        with explained(settings):
            check_job_users(settings)
            has_job_users = settings.job_users is not None
            stack.enter_context(alone(home, has_job_users=has_job_users))
            if has_job_users:
                plain_files.keep_to_owners(home.jobs)
            sole, store = _store(settings, stack)
            ensure_administrator(store, home, time.time())
            machines = Machines()
            inventory = stack.enter_context(contextlib.closing(_inventory(settings, store, bus, machines)))
            tls = _tls(settings)
            listening = stack.enter_context(listening_socket(settings))
            url, own_url = urls(settings, listening.getsockname()[1])
            context = Context(settings, store, bus, time.time, settings.public_url or url, machines=machines)
            context.data_sets.settle()
            server = _server(context, tls, listening.connections)
            _warn(settings)
            server_file = {"url": own_url, "pid": os.getpid()}
            if settings.tls_self_signed:
                server_file["certificate"] = str(tls[0])
            write_atomically(home.server, json.dumps(server_file) + "\n")
            stack.callback(home.server.unlink, missing_ok=True)
            tempfile.tempdir = str(home.incoming)  # archives may be larger than /tmp
            stack.callback(setattr, tempfile, "tempdir", None)
            _greet(url, store, home.token)

        def wanted(demand: int) -> None:
            inventory.demand = demand

        def look() -> None:
            inventory.refresh()
            sole.hold()

        trials = {
            kind: of_kind for extension in extensions() for kind, of_kind in extension.trials(context).items()
        }
        parts = {
            "edt-searches": Controller(context, trials).run,
            "edt-loop": lambda: loop.run(
                settings, store, bus, context.stop, told=wanted, listed=lambda: machines.listed
            ),
            "edt-inventory": lambda: repeat(look, INTERVAL, context.stop),
            "edt-retention": lambda: repeat(
                lambda: retention.prune(context), retention.INTERVAL, context.stop
            ),
        }
        notifier = Notifier(settings.notify, store, _noticed, context.stop)
        if settings.notify is not None:
            parts["edt-notices"] = lambda: repeat(notifier.look, notices.INTERVAL, context.stop)
        gc.freeze()  # modules and routes stay: looking through them took half of a page's time
        _serve(server, parts, listening, context.stop)


def _noticed(job: JobRecord) -> Mapping[str, Any]:
    """A job as a command gets it: without its variables, which may be secrets."""
    return answers.job(job).model_dump(mode="json") | {"environment": None}


def _store(settings: Settings, stack: contextlib.ExitStack) -> tuple[SoleUser, Store]:
    database = Database(settings.database_url)
    sole = SoleUser(database)
    sole.hold()
    stack.callback(sole.release)
    store = Store.of(database)
    stack.callback(store.close)
    if bind(store, settings.paths):
        if strays := remove_strays(settings.paths, store):
            log.warning("folders that no job has are in the trash until the next start", folders=strays)
        definitions.remove_strays(settings.paths, store)
    for extension in extensions():
        extension.settle(store)
    return sole, store


def _losses(settings: Settings) -> Losses:
    ssh = Ssh.detect(RunOptions(groups=settings.groups), os.environ)
    return Losses(partial(SshCheck, arguments=ssh.arguments))


def _inventory(settings: Settings, store: Store, bus: Bus, machines: Machines) -> Inventory:
    source = choose(HostOptions(os.environ, settings.groups))
    log.info("devices", source=source.name)
    inventory = Inventory(source, store, bus, time.time, machines, _losses(settings))
    inventory.refresh()
    return inventory


def _tls(settings: Settings) -> tuple[Path | None, Path | None]:
    """Certificate and key to speak HTTPS with."""
    if not settings.tls_self_signed:
        return settings.tls_certificate, settings.tls_key
    return ensure_certificate(settings.paths.tls, names_of_this_machine(settings.host), time.time())


def _server(context: Context, tls: tuple[Path | None, Path | None], connections: Connections) -> "_Server":
    certificate, key = tls
    app: Any = ProxyHeadersMiddleware(create_app(context))  # type: ignore[arg-type]  # ASGI's types are two
    config = uvicorn.Config(
        connections.noted(app),
        proxy_headers=False,  # that a proxy has sent them is noted after the connection
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=PATIENCE,
        http=partial(TimedProtocol, connections=connections),  # type: ignore[arg-type]  # as a class
        backlog=BACKLOG,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    for path in (certificate, key):
        if path is not None:
            path.open("rb").close()  # OpenSSL's error would not name it
    config.load()
    return _Server(config, context.stop)


def urls(settings: Settings, port: int, name: Callable[[], str] = public_name) -> tuple[str, str]:
    """The service's address, and the one that commands on this machine use.

    They use loopback where the service listens on all interfaces, unless its certificate is for other names.
    """
    host = public = settings.host
    if host in LOOPBACK_OF:
        host, public = LOOPBACK_OF[host], name()
        if settings.tls_certificate is not None:
            host = public
    scheme = "https" if settings.has_tls else "http"
    first, second = (f"{scheme}://{f'[{at}]' if ':' in at else at}:{port}" for at in (public, host))
    return first, second


def _warn(settings: Settings) -> None:
    if not settings.is_loopback and not settings.has_tls:
        log.warning(
            "tokens and code travel unencrypted",
            host=settings.host,
            next="give --tls-certificate and --tls-key, or --tls-self-signed",
        )
    if settings.job_users is None:
        log.warning(
            "all jobs run as one user and can read each other's files",
            user=user_name(),
            next="as root, give --job-users",
        )
    words = shlex.split(settings.notify or "")
    problem = command_problem(words[0], Path()) or script_problem(words, Path()) if words else None
    if problem is not None:
        log.warning("the command for notices cannot run", reason=problem.text, next=problem.advice)


def _greet(url: str, store: Store, token: Path) -> None:
    hosts = store.hosts.all()
    devices = sum(len(host.devices) for host in hosts)
    print(f"EDT serves {_plural(devices, 'device')} of {_plural(len(hosts), 'host')} at {url}", flush=True)
    print(f"The administrator's token is in {token}; edt ui logs a browser on", flush=True)


def _plural(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _serve(
    server: "_Server",
    parts: Mapping[str, Callable[[], None]],
    listening: socket.socket,
    stop: threading.Event,
) -> None:
    """Run the interface in this thread and each other part in one of its own, until one of them ends."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            log.error("a part of the service has failed", exc_info=error)
            failures.append(error)
            server.should_exit = True
        stop.set()

    threads = [threading.Thread(target=guarded, args=(work,), name=name) for name, work in parts.items()]
    for thread in threads:
        thread.start()
    try:
        server.run(sockets=[listening])
    finally:
        stop.set()
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


def repeat(work: Callable[[], None], interval: float, stop: threading.Event) -> None:
    """Call `work` until `stop` is set, with `interval` seconds before each call.

    While the database does not answer, or a lost connection of ours still holds it, it is tried again; that
    is logged once.
    """
    is_away = False
    while not stop.wait(interval):
        try:
            work()
        except (*AWAY, InUseError) as error:
            if not is_away:
                log.warning("the database cannot be used, it is tried again", reason=str(error))
            is_away = True
        else:
            if is_away:
                log.info("the database can be used again")
            is_away = False


def raise_file_limit() -> None:
    """Allow as many open files as are needed; shells allow 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, FILES)), hard))


def set_up_logs() -> None:
    """Log to standard error: for people on a terminal, else as JSON."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
    ]
    shown: list[Any] = [structlog.processors.JSONRenderer()]
    if sys.stderr.isatty():
        shown = [in_visible_characters, structlog.dev.ConsoleRenderer()]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *shown],
            foreign_pre_chain=shared,
        )
    )
    handler.addFilter(RepeatFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for noisy in ("alembic", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
