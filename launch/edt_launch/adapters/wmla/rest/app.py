"""The application of WMLA's interfaces: all routers, behind a middleware of their own."""

from functools import cache

from fastapi import APIRouter, FastAPI
from prometheus_client import Histogram
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from edt_launch.adapters.wmla.hypersearch import routes as hypersearch
from edt_launch.adapters.wmla.rest import applications, execs, logon, platform, results
from edt_launch.adapters.wmla.rest.authenticator import (
    AUTH,
    CONDUCTOR,
    DEEP_LEARNING,
    WmlaAuthenticator,
    response,
)
from edt_launch.cluster.nvidia import Nvml
from edt_launch.service.accounts.auditing import Auditor
from edt_launch.service.app.context import Context
from edt_launch.service.http import problems
from edt_launch.service.http.middleware import RequestMiddleware


def serves(scope: Scope) -> bool:
    """Whether a request belongs to one of these interfaces."""
    path = scope["path"]
    return any(path == base or path.startswith(f"{base}/") for base in (CONDUCTOR, DEEP_LEARNING, AUTH))


def create_app(context: Context, seconds: Histogram) -> ASGIApp:
    """The application of a service, which tells `seconds` the time that answers take."""
    app = FastAPI(openapi_url=None, redirect_slashes=False, routes=_routes())
    app.state.context = context
    app.state.meter = Nvml()
    problems.add_handlers(app, response)
    middleware = RequestMiddleware(app, WmlaAuthenticator(context), seconds, note=Auditor(context).note)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # Some clients put a slash behind paths; a redirection would have them send their archive twice.
        scope["path"] = scope["path"].rstrip("/")
        await middleware(scope, receive, send)

    return serve


@cache
def _routes() -> list[BaseRoute]:
    """Shared by all services of a process: FastAPI takes long to find out how to call them."""
    router = APIRouter(redirect_slashes=False)
    for module in (execs, results, applications, platform, hypersearch):
        router.include_router(module.router, prefix=DEEP_LEARNING)
    router.include_router(applications.conductor, prefix=CONDUCTOR)
    router.include_router(logon.router)
    return router.routes
