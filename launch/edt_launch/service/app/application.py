"""The application: all routers, behind the middleware."""

from functools import cache
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from edt_launch import __version__
from edt_launch.service.accounts.auditing import Auditor
from edt_launch.service.accounts.authenticator import BearerAuthenticator
from edt_launch.service.accounts.rest import tokens, users
from edt_launch.service.app import system
from edt_launch.service.app.context import Context
from edt_launch.service.app.extensions import extensions
from edt_launch.service.cluster.rest import cluster, shares, timeline
from edt_launch.service.data import rest as data
from edt_launch.service.experiments.rest import definitions, experiments, projects, runs
from edt_launch.service.experiments.searches import rest as searches
from edt_launch.service.files.rest import files, logs
from edt_launch.service.http import problems
from edt_launch.service.http.ending import Ending
from edt_launch.service.http.entrance import Entrance
from edt_launch.service.http.middleware import RequestMiddleware, histogram
from edt_launch.service.http.sites import Sites
from edt_launch.service.jobs.rest import job_lists, jobs, stream
from edt_launch.service.web import app as web

ROUTERS: tuple[Any, ...] = (
    system,
    job_lists,
    jobs,
    logs,
    files,
    projects,
    definitions,
    experiments,
    runs,
    searches,
    data,
    stream,
    cluster,
    shares,
    timeline,
    users,
    tokens,
)


def create_app(context: Context) -> ASGIApp:
    """The application of a service."""
    # Pages that describe the interface would load their scripts from elsewhere: there are none.
    app = FastAPI(
        title="EDT",
        version=__version__,
        summary="Jobs that share one pool of devices and grow and shrink while they run.",
        docs_url=None,
        redoc_url=None,
        routes=_routes(),
    )
    registry = system.registry_of(context)
    app.state.context = context
    app.state.registry = registry
    app.state.job_list_cache = stream.JobListCache(context.store, context.bus, context.clock)
    problems.add_handlers(app)
    problems.describe(app)
    seconds = histogram(registry)
    own = RequestMiddleware(app, BearerAuthenticator(context), seconds, note=Auditor(context).note)
    others = [(extension.serves, extension.application(context, seconds)) for extension in extensions()]
    others.append((web.serves, web.create_app(context, seconds)))

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        found = next((application for serves, application in others if is_http and serves(scope)), own)
        await found(scope, receive, send)

    return Ending(Sites.of(context, Entrance(serve)))


@cache
def _routes() -> list[BaseRoute]:
    """Shared by all services of a process: FastAPI takes 0.1 s to find out how to call them."""
    # The middleware looks at the token; this tells so.
    bearer = HTTPBearer(auto_error=False, description="`Authorization: Bearer TOKEN`")
    router = APIRouter(dependencies=[Depends(bearer)])
    for module in ROUTERS:
        router.include_router(module.router, prefix="/api/v1")
    router.include_router(system.outside)
    return router.routes
