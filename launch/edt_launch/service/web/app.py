"""The application of the pages: all routers, behind a middleware of their own."""

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from prometheus_client import Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edt_launch.service.accounts.auditing import Auditor
from edt_launch.service.accounts.logon import PasswordLogon
from edt_launch.service.accounts.pages import account, logon, passwords, users
from edt_launch.service.accounts.pages.authenticator import WebAuthenticator
from edt_launch.service.app.context import Context
from edt_launch.service.cluster.pages import console, pool, shares
from edt_launch.service.data.pages import data
from edt_launch.service.experiments.pages import (
    adding,
    definition_form,
    deletions,
    experiment_form,
    experiments,
    new_search,
    project_form,
    searches,
    starting,
)
from edt_launch.service.http import problems
from edt_launch.service.http.middleware import RequestMiddleware
from edt_launch.service.jobs.pages import actions, job, jobs, run_application, search, selection
from edt_launch.service.web import templating

STATIC = Path(__file__).with_name("static")
PAGES: tuple[Any, ...] = (
    account,
    actions,
    run_application,
    console,
    data,
    definition_form,
    deletions,
    adding,
    experiment_form,
    project_form,
    starting,
    new_search,
    experiments,
    job,
    jobs,
    logon,
    passwords,
    pool,
    search,
    searches,
    selection,
    shares,
    users,
)
"""Modules, each with a `router`, in the order in which these are asked for a path."""

FIRST = frozenset(
    {
        "",
        "account",
        "console",
        "data",
        "experiments",
        "favicon.ico",
        "jobs",
        "logoff",
        "logon",
        "new-share",
        "pool",
        "search",
        "searches",
        "selected",
        "shares",
        "static",
        "users",
    }
)
"""What the paths of the pages begin with."""

OTHERS = frozenset({"api", "healthz", "metrics", "openapi.json"})
"""What the paths of the service's interface for programs begin with."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
YEAR = "public, max-age=31536000, immutable"


def serves(scope: Scope) -> bool:
    """Whether a page is asked for, or a file that pages load; or by a browser, what is not there."""
    _, slash, path = scope["path"].partition("/")
    first = path.partition("/")[0]
    if first in FIRST:
        return bool(slash)
    return first not in OTHERS and "text/html" in Headers(scope=scope).get("accept", "")


def create_app(context: Context, seconds: Histogram) -> ASGIApp:
    """The application of a service, which tells `seconds` the time that answers take."""
    app = FastAPI(openapi_url=None, redirect_slashes=False, routes=_routes())
    app.state.context = context
    app.state.password_logon = PasswordLogon(context)
    problems.add_handlers(app, templating.error)
    return _with_headers(
        GZipMiddleware(RequestMiddleware(app, WebAuthenticator(context), seconds, note=Auditor(context).note))
    )


@cache
def _routes() -> list[BaseRoute]:
    """Shared by all services of a process: FastAPI takes 0.1 s to find out how to call them."""
    router = APIRouter(redirect_slashes=False)
    for page in PAGES:
        router.include_router(page.router)

    @router.get("/favicon.ico")
    def favicon() -> FileResponse:
        return FileResponse(STATIC / "favicon.svg")

    router.mount("/static", StaticFiles(directory=STATIC))
    return router.routes


def _with_headers(app: ASGIApp) -> ASGIApp:
    """Have every answer tell browsers what its page may do, and how long it may be kept."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        templating.CURRENT.set(scope)
        is_kept = scope.get("path", "").startswith("/static/") and scope.get("query_string", b"")

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = POLICY
                headers["Referrer-Policy"] = "same-origin"
                if is_kept and message["status"] in (200, 304):
                    headers["Cache-Control"] = YEAR
            await send(message)

        await app(scope, receive, with_headers)

    return serve
