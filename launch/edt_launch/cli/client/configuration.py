"""Where the service is, and the token to use there.

The first of these that names an address wins:

1. `EDT_URL` in the environment;
2. `url` in the configuration file, `~/.config/edt/config.toml` (or under `XDG_CONFIG_HOME`);
3. a service on this machine: `server.json` in `EDT_HOME`, by default `~/.edt`.

The token is `EDT_TOKEN`, or else what stands beside the address. An address from the environment gets a token
from a file only if that file names the same address, so no service is ever shown another one's token.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from edt_launch.cli.errors import MistakenError, UnreachableError
from edt_launch.core.files.text_files import read_text
from edt_launch.core.system.home_directory import HOME_ADVICE, NO_HOME, expanded

TOKEN = "token"
"""The file in a service's folder with its administrator's token; it stays when the service ends."""


@dataclass(frozen=True)
class Configuration:
    """Where a service is, without a slash at its end; messages tell where that and the token come from.

    `certificate` is the file of one to trust besides: that which the service has made itself.
    """

    url: str
    token: str | None
    source: str
    token_source: str = ""
    certificate: str | None = None


def home(environment: Mapping[str, str]) -> Path | None:
    """The folder of a service on this machine; None if that is in a home directory, and the user has none."""
    return expanded(environment.get("EDT_HOME") or "~/.edt")


def config_file(environment: Mapping[str, str]) -> Path | None:
    """The user's configuration file, there or not; None if the user has no home directory for it."""
    base = expanded(environment.get("XDG_CONFIG_HOME") or "~/.config")
    return base and base / "edt" / "config.toml"


def find(environment: Mapping[str, str]) -> Configuration | None:
    """The service that is named first, None if none is."""
    known = list(filter(None, (_from_file(environment), _from_home(environment))))
    if url := environment.get("EDT_URL"):
        address = checked(url, "EDT_URL")
        same = (one for one in known if one.url == address)
        known.insert(0, replace(next(same, Configuration(address, None, "")), source="EDT_URL"))
    if not known:
        return None
    if token := environment.get("EDT_TOKEN"):
        return replace(known[0], token=_checked_token(token, "EDT_TOKEN"), token_source="EDT_TOKEN")
    return known[0]


def load(environment: Mapping[str, str]) -> Configuration:
    """The service that is named first.

    Raises:
        MistakenError: none is named, or not properly.
        UnreachableError: none is named, and the one on this machine does not run.
    """
    if configuration := find(environment):
        return configuration
    folder, file = home(environment), config_file(environment)
    if folder is None:
        raise MistakenError(f"no service is known: EDT_URL is not set, and {NO_HOME}", HOME_ADVICE)
    if (folder / TOKEN).exists():
        raise UnreachableError(
            f"the service of {folder} does not run", "start it with 'edt serve', or set EDT_URL and EDT_TOKEN"
        )
    raise MistakenError(
        f"no service is known: EDT_URL is not set, {file or 'no configuration file'} names none, and none "
        f"has been started in {folder}",
        "start one with 'edt serve', try 'edt up --demo', or set EDT_URL and EDT_TOKEN",
    )


def checked(url: str, source: str) -> str:
    """The address without what is superfluous; raises `MistakenError` unless it is one of http or https."""
    from urllib.parse import urlsplit

    expected = "expected an address such as http://127.0.0.1:8766"
    if "@" in url:
        raise MistakenError(f"{source}: a password in an address is not used", "set EDT_TOKEN instead")
    try:
        parts = urlsplit(url.strip())
        parts.port  # noqa: B018 - it is parsed when it is asked for
    except ValueError as error:
        raise MistakenError(f"{source}: {url!r}: {error}", expected) from None
    try:
        (parts.hostname or "").encode("idna")
    except UnicodeError:
        raise MistakenError(f"{source}: {url!r} has no valid host name", expected) from None
    is_plain = parts.path.isascii() and url.strip().isprintable() and " " not in url.strip()
    is_service = parts.scheme in ("http", "https") and parts.hostname and not parts.query + parts.fragment
    if not (is_plain and is_service):
        raise MistakenError(f"{source}: {url!r} is no address of a service", expected)
    return url.strip().rstrip("/").removesuffix("/api/v1")


def _checked_token(token: str, source: str) -> str:
    """The token without white space around it; raises `MistakenError`, without its value, if it is none."""
    token = token.strip()
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise MistakenError(
            f"{source} is no token: it has {len(token)} characters, some of which no token has",
            "copy it again; a token is a word such as edt_...",
        )
    return token


def _from_file(environment: Mapping[str, str]) -> Configuration | None:
    path = config_file(environment)
    if path is None:
        return None
    try:
        text = read_text(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise MistakenError(f"{path} cannot be read: {_reason(error)}", "mend or remove it") from None
    import tomllib

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MistakenError(
            f"{path}: {error}", 'expected lines such as url = "http://127.0.0.1:8766"'
        ) from None
    if unknown := sorted(set(table) - {"url", "token"}):
        raise MistakenError(f"{path}: nothing is called {unknown[0]!r}", "expected url and token")
    for name, value in table.items():
        if not isinstance(value, str):
            raise MistakenError(f"{path}: {name} is no text", "put its value in quotation marks")
    if "url" not in table:
        return None
    token = table.get("token")
    token = token and _checked_token(token, f"{path}: token")
    return Configuration(checked(table["url"], str(path)), token, str(path), str(path))


def _from_home(environment: Mapping[str, str]) -> Configuration | None:
    folder = home(environment)
    if folder is None:
        return None
    path = folder / "server.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        url, certificate = told["url"], told.get("certificate")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MistakenError(
            f"{path} cannot be read: {_reason(error)}", "start the service again: edt serve"
        ) from None
    try:
        token = (folder / TOKEN).read_text(encoding="utf-8").strip() or None
    except OSError:  # another user's service: its token is not for us
        token = None
    address = checked(str(url), str(path))
    return Configuration(address, token, str(path), str(folder / TOKEN), certificate)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or f"{type(error).__name__}: {error}"
