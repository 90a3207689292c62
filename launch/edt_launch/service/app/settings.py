"""The service's settings: declared once, with type, default and environment name.

A value is taken from the command line, or else from the environment (``EDT_PORT``), or else from
``<EDT_HOME>/service.toml`` (``port = 8766``). `edt serve --help` is made from the fields below.
"""

import hashlib
import os
import shlex
import tomllib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, ValidationError, create_model
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from sqlalchemy.engine import URL
from typing_extensions import override

from edt_launch.allocator.model import Options
from edt_launch.core.command_line import Option, filled, of, options
from edt_launch.core.errors import UsageError
from edt_launch.core.files.text_files import decoded
from edt_launch.core.run_options import PortOptions
from edt_launch.core.system.accounts import Accounts
from edt_launch.launcher.transports.choice import option_groups
from edt_launch.service.app.home import Home, NoHomeDirectoryError, absolute
from edt_launch.service.db.engine import parse_url, sqlite_url
from edt_launch.service.expectations import expected

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=1)]


class SettingsError(Exception):
    """Settings make no sense; the message has a line for each: name, value, what is expected."""


def _words(command: str | None) -> str | None:
    shlex.split(command or "")  # raises ValueError
    return command


def _database(url: str | None) -> str | None:
    return None if url is None else parse_url(url).render_as_string(hide_password=False)


def _accounts(text: str | None) -> str | None:
    if text is not None:
        Accounts(text)  # raises ValueError
    return text


FilePath = Annotated[Path, AfterValidator(absolute)]


class _SettingsFile(TomlConfigSettingsSource):
    @override
    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        return tomllib.loads(decoded(file_path.read_bytes()))


def _declared(option: Option) -> tuple[Any, Any]:
    """An option of a source of hosts, or of a transport, as a setting: its type, and the rest."""
    kind = get_args(option.annotation)[0]
    if kind == Path | None:
        kind = FilePath | None
    bounds = {name: getattr(option.info, text) for name, text in (("ge", "min"), ("le", "max"))}
    limits = {name: bound for name, bound in bounds.items() if bound is not None}
    return kind, Field(default=option.field.default, description=option.help, **limits)


GROUPS = option_groups()
"""What sources of hosts and transports have declared: options of `edt-launch`, and settings here."""

if TYPE_CHECKING:
    _Declared = BaseSettings
else:
    _Declared = create_model(
        "_Declared",
        __base__=BaseSettings,
        **{option.field.name: _declared(option) for group in GROUPS for option in options(group)},
    )


class Settings(_Declared):
    """Everything that can be set. Sizes are bytes, times seconds."""

    model_config = SettingsConfigDict(
        env_prefix="EDT_", extra="forbid", frozen=True, env_ignore_empty=True, validate_default=True
    )

    home: Annotated[FilePath, Field(description="Folder of the service.")] = Path("~/.edt")
    database: Annotated[
        str | None,
        AfterValidator(_database),
        Field(description="postgresql://user:password@host/name. Default: a SQLite file in the folder."),
    ] = None
    host: Annotated[str, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0: any free port.")] = 8766
    public_url: Annotated[
        str | None,
        Field(
            pattern=r"^https?://[^/\s]+$",
            description="URL of the service for clients. Default: from host and port.",
        ),
    ] = None
    allowed_hosts: Annotated[
        str, Field(description="Additional host names to accept, separated by commas; *: any.")
    ] = ""
    tls_certificate: Annotated[FilePath | None, Field(description="Certificate (PEM) for HTTPS.")] = None
    tls_key: Annotated[FilePath | None, Field(description="Private key (PEM) of the certificate.")] = None
    tls_self_signed: Annotated[
        bool, Field(description="Use HTTPS with a self-signed certificate made by the service.")
    ] = False
    banner: Annotated[str, Field(max_length=1000, description="Message at the top of each page.")] = ""
    public_metrics: Annotated[bool, Field(description="Serve /metrics without a token.")] = False

    horovodrun: Annotated[
        bool, Field(description="Run jobs, other than WMLA ones, with Horovod's own driver.")
    ] = False

    job_users: Annotated[
        str | None,
        AfterValidator(_accounts),
        Field(description="Accounts for the jobs of users, 'ann=alice,bob=1002,*=*'; needs root."),
    ] = None

    data_fs: Annotated[
        FilePath | None,
        Field(description="Data folder. Default: data in the service's folder."),
    ] = None
    max_data: Annotated[
        Bytes, Field(description="Maximum size of a data set, and of its archive, in bytes.")
    ] = 256 * 2**30
    max_data_files: Annotated[
        int, Field(ge=1, description="Maximum number of files and folders of an uploaded data set.")
    ] = 200_000

    max_upload: Annotated[Bytes, Field(description="Maximum size of a code archive, in bytes.")] = 512 * 2**20
    max_unpacked: Annotated[Bytes, Field(description="Maximum size of unpacked code, in bytes.")] = 2 * 2**30
    max_files: Annotated[
        int, Field(ge=1, description="Maximum number of files and folders of a job's code.")
    ] = 50_000
    max_log_size: Annotated[
        Bytes, Field(description="Maximum size of a job's log, in bytes: the output's beginning and end.")
    ] = 2**30
    max_body: Annotated[
        Bytes, Field(description="Maximum size of the body of any other request, in bytes.")
    ] = 2**20

    max_result: Annotated[
        Bytes, Field(description="Maximum size of a result or checkpoint to download, in bytes.")
    ] = 64 * 2**30

    max_connections: Annotated[
        int,
        Field(ge=1, description="Maximum number of connections; fewer if the system allows few open files."),
    ] = 1024
    max_connections_per_address: Annotated[
        int, Field(ge=1, description="Maximum number of connections from one address, such as a proxy's.")
    ] = 256

    highest_priority: Annotated[
        int,
        Field(ge=-1000, le=1000, description="Maximum priority for users other than administrators."),
    ] = 1000

    least_password: Annotated[int, Field(ge=1, le=128, description="Minimum length of passwords.")] = 8

    retention: Annotated[
        float,
        Field(ge=0, le=36500, description="Days to keep a job after its end; 0: for ever."),
    ] = 90.0

    notify: Annotated[
        str | None,
        AfterValidator(_words),
        Field(description="Command to run when a job ends, with the job as JSON on standard input."),
    ] = None

    coalesce: Annotated[
        Seconds, Field(description="Seconds for which events are gathered before a decision.")
    ] = 0.5
    interval: Annotated[Seconds, Field(description="Maximum seconds between two decisions.")] = 5.0
    preemption: Annotated[
        Literal["none", "to min", "to zero"],
        Field(description="What a higher priority may take from lower ones."),
    ] = "to min"
    turn: Annotated[
        Seconds,
        Field(description="By how much of its minimum a suspended job is behind one whose place it takes."),
    ] = Options.turn
    longest_wait: Annotated[
        Seconds,
        Field(description="When the first waiting job gets a reservation, if all minimums would fit."),
    ] = Options.longest_wait
    protected: Annotated[Seconds, Field(description="Seconds for which a started job keeps its minimum.")] = (
        300.0
    )
    idle_timeout: Annotated[
        Seconds, Field(description="Seconds until a job without a step is cut to its minimum; 0: never.")
    ] = 0.0

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flag, then environment, then the file in the service's folder."""
        home = {**env_settings(), **init_settings()}.get("home") or "~/.edt"
        file = Home(absolute(home)).settings
        return init_settings, env_settings, _SettingsFile(settings_cls, file)

    @property
    def groups(self) -> tuple[object, ...]:
        """The options of sources of hosts and of transports."""
        values = vars(self)
        if values["ray"] is not None and values["ray_pool"] is None:
            folder = hashlib.sha256(str(self.home).encode()).hexdigest()
            values = {**values, "ray_pool": f"pool-{folder[:16]}"}
        read: list[object] = [filled(group, values) for group in GROUPS]
        return tuple(read)

    @property
    def paths(self) -> Home:
        """Where the service keeps what."""
        return Home(self.home)

    @property
    def database_url(self) -> URL:
        """The database to use."""
        return sqlite_url(self.paths.database) if self.database is None else parse_url(self.database)

    @property
    def data_folder(self) -> Path:
        """Where jobs find data."""
        return self.data_fs or self.paths.data

    @property
    def has_job_users(self) -> bool:
        """Whether jobs run under accounts of their own: the service may read what these must not."""
        return self.job_users is not None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can talk to the service."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def has_tls(self) -> bool:
        """Whether the service speaks HTTPS."""
        return self.tls_self_signed or self.tls_certificate is not None


def load(**flags: Any) -> Settings:
    """The settings, where `flags` (None: not given) come before environment and file."""
    try:
        settings = Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise SettingsError("\n".join(map(_problem, error.errors()))) from None
    except NoHomeDirectoryError as error:
        raise SettingsError(str(error)) from None
    except ValueError as error:  # the file is no TOML
        raise SettingsError(f"{Home.default().settings.name}: {error}") from None
    try:
        ports = of(settings.groups, PortOptions).ports
    except UsageError as error:
        raise SettingsError(str(error)) from None
    if settings.horovodrun and ports is not None:
        raise SettingsError("horovodrun and port_range: give one, as Horovod's driver chooses its own ports")
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise SettingsError("tls_certificate and tls_key: give both, or none")
    if settings.tls_self_signed and settings.tls_certificate is not None:
        raise SettingsError("tls_self_signed and tls_certificate: give one of them")
    _check_data_folder(settings)
    return settings


def _check_data_folder(settings: Settings) -> None:
    """See that the data folder, which everybody reads, has nothing else of the service's folder in it."""
    home, data = (Path(os.path.realpath(path)) for path in (settings.home, settings.data_folder))
    default = Path(os.path.realpath(settings.home), settings.paths.data.name)
    if home.is_relative_to(data):
        how = f"contains the service's folder, {home}, and all users can read the data folder"
    elif data.is_relative_to(home) and data != default:
        how = f"is in the service's folder, {home}, where only {default} is for data"
    else:
        return
    raise SettingsError(f"data_fs: {data} {how}: name a folder outside of it, or leave it out")


def _problem(problem: Any) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{Home.default().settings.name}: nothing is called {name!r}; `edt serve --help` lists all"
    value = "(hidden)" if name == "database" else repr(problem["input"])
    return f"{name}: {value}: {expected(problem)}"
