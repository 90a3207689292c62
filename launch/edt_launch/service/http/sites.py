"""Which names and which pages requests may come by: browsers send passwords along with those of any page."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from edt_launch.service.app.context import Context
from edt_launch.service.errors import ForbiddenError, ServiceError
from edt_launch.service.http import problems

ANY = "*"
"""Stands for all names."""

LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names under which pages of other programs are served, too."""


def names_of_this_machine(host: str) -> tuple[str, ...]:
    """What this machine is called by those who talk to it; `host` is the address that is listened on."""
    own = (host, socket.gethostname(), socket.getfqdn(), *LOCAL)
    return tuple(name for name in dict.fromkeys(own) if name not in ("0.0.0.0", "::"))


class Sites:
    """An ASGI application around another one.

    It refuses requests to a host name that is not the service's, which a stranger's domain may have been
    pointed to, and those that a page of another site makes.

    Args:
        app: the one inside.
        names: host names by which it may be asked, or `ANY`; addresses always are.
        sites: those whose pages may ask it, where a proxy passes requests on under another name.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str], sites: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)
        self._sites = frozenset(name.lower() for name in sites)

    @classmethod
    def of(cls, context: Context, app: ASGIApp) -> "Sites":
        """With the names of a service."""
        settings = context.settings
        added = set(map(str.strip, settings.allowed_hosts.split(",")))
        sites = (added | {_name_of(settings.public_url or "")}) - {""}
        names = {*names_of_this_machine(settings.host), _name_of(context.url)}
        return cls(app, names | sites, sites - {ANY, *LOCAL})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and (error := self._error(Headers(scope=scope))) is not None:
            await problems.of(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _error(self, headers: Headers) -> ServiceError | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host and not self._is_own(_name_of(f"//{host}")):
            return ForbiddenError(
                f"{host[:80]!r} is no name of this service",
                "ask for one of its names, or have its administrator add that one to allowed_hosts",
            )
        if origin is None or _netloc_of(origin) == host.lower() or _name_of(origin) in self._sites:
            return None
        return ForbiddenError(
            f"a page of {origin[:80]!r} may not use this service",
            "open the service's own pages, or use its interface without a browser",
        )

    def _is_own(self, name: str) -> bool:
        return ANY in self._names or name in self._names or _is_address(name)


def is_own_page(headers: Headers) -> bool:
    """Whether a page of the service has made a request that `Sites` has let pass, as browsers tell it."""
    return headers.get("sec-fetch-site") == "same-origin" or "origin" in headers


def _netloc_of(origin: str) -> str:
    """The host and the port of an origin; empty if it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
