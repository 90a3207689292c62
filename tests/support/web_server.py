"""An application on a port of this machine, served by a thread."""

import threading
import time

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

PATIENCE = 60.0
"""Seconds until a test gives up."""


class WebServer:
    """Serves `app`, which may be replaced, at a port that stays the same when it is started again."""

    def __init__(self, app: ASGIApp | None = None) -> None:
        self.app = app
        self.port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            port=self.port,
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = server = uvicorn.Server(config)
        self._thread = threading.Thread(target=server.run)
        self._thread.start()
        end = time.monotonic() + PATIENCE
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.01)
        self.port = server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)
