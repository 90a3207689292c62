"""The application of WMLA's interfaces: all routers, behind a middleware of their own."""

from fastapi import APIRouter, FastAPI
from prometheus_client import Histogram
from starlette.types import ASGIApp, Receive, Scope, Send

from edt_launch.adapters.wmla.hypersearch import routes as hypersearch
from edt_launch.adapters.wmla.rest import conductor, execs, logon, plain, platform, results, scheduler
from edt_launch.adapters.wmla.rest.authenticator import WmlaAuthenticator
from edt_launch.adapters.wmla.rest.bases import CONDUCTOR, DEEP_LEARNING
from edt_launch.cluster.nvidia import Nvml
from edt_launch.service.api import problems
from edt_launch.service.api.context import Context
from edt_launch.service.api.middleware import RequestMiddleware

DEEP_LEARNING_ROUTERS: tuple[APIRouter, ...] = (
    *(execs.router, results.router, scheduler.router, platform.router, hypersearch.router),
)
CONDUCTOR_ROUTERS: tuple[APIRouter, ...] = (conductor.router,)


def create_app(context: Context, seconds: Histogram) -> ASGIApp:
    """The application of a service.

    Args:
        context: the service's parts.
        seconds: where the time that answers take is told.
    """
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    app.state.context = context
    app.state.meter = Nvml()
    problems.add_handlers(app, plain.tell)
    for router in DEEP_LEARNING_ROUTERS:
        app.include_router(router, prefix=DEEP_LEARNING)
    for router in CONDUCTOR_ROUTERS:
        app.include_router(router, prefix=CONDUCTOR)
    app.include_router(logon.router)
    middleware = RequestMiddleware(app, WmlaAuthenticator(context), seconds)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # Some clients put a slash behind paths; a redirection would have them send their archive twice.
        scope["path"] = scope["path"].rstrip("/")
        await middleware(scope, receive, send)

    return serve
