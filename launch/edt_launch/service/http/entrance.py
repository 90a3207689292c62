"""Where requests enter: what HTTP allows and routers do not know is made plain to them here."""

import re
from typing import Any
from urllib.parse import unquote

from anyio import CancelScope
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ABSOLUTE = re.compile(rb"https?://[^/]*(/.*)?", re.IGNORECASE | re.DOTALL)


class Entrance:
    """An ASGI application around another one.

    HEAD is GET without the body (RFC 9110, 9.3.2). What is asked for may be named by a whole URI, as to a
    proxy (RFC 9112, 3.2.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        inner = {**scope, **_place(scope)}
        if scope["method"] == "HEAD":
            await self._head({**inner, "method": "GET"}, receive, send)
        else:
            await self._app(inner, receive, send)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        with CancelScope() as answering:  # a stream has no end of its own

            async def send_head(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b""})
                    answering.cancel()

            await self._app(scope, receive, send_head)


def _place(scope: Scope) -> dict[str, Any]:
    absolute = _ABSOLUTE.fullmatch(scope.get("raw_path") or b"")
    if absolute is None:
        return {}
    path = absolute[1] or b"/"
    return {"raw_path": path, "path": unquote(path.decode("ascii"))}
