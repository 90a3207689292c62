"""What becomes of requests that are under way when the service ends."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edt_launch.service.errors import UnavailableError
from edt_launch.service.http import problems


class Ending:
    """An ASGI application around another one.

    Requests that have not been answered in the time that the service gives them to end are cancelled by its
    web server. They are told so; the server itself would log an error for each.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if not has_begun:
                error = UnavailableError("the service is ending", "try again in a moment")
                await problems.of(error)(scope, receive, send)
