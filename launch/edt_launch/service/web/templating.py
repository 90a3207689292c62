"""From view models to HTML: the templates, and what they can call."""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import Scope

from edt_launch.core.history.failure_text import cause
from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.core.text.durations import duration
from edt_launch.service.http.compressed import compressed, send
from edt_launch.service.http.dependencies import USER
from edt_launch.service.web import wording
from edt_launch.service.web.theme import theme_of

HERE = Path(__file__).parent

TEMPLATES = sorted(HERE.parent.rglob("templates"))
"""Folders of templates: those of all pages, and those of each feature."""

HX = "hx-request"
"""The header by which htmx, and the dialogs, ask for what is inside a page's frame."""

CURRENT: ContextVar[Scope | None] = ContextVar("CURRENT", default=None)
"""The request under way, for the pages of errors, which are made without it."""

PLACES = (
    ("/pool", "Pool", "cpu"),
    ("/jobs", "Jobs", "list-details"),
    ("/experiments", "Experiments", "flask"),
    ("/data", "Data", "folder"),
    ("/console", "Console", "layout-dashboard"),
    ("/users", "Users", "users"),
)
"""Addresses, names and icons of the sections of every page; users are for administrators."""


@cache
def static(name: str) -> str:
    """The address of a file that pages load; it changes with the file."""
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()
    return f"/static/{name}?v={digest[:16]}"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {"static": static, "places": PLACES, "wording": wording}
    environment.filters |= {
        "byte_size": byte_size,
        "cause": cause,
        "duration": duration,
        "iso": wording.iso,
        "moment": wording.moment,
        "relative": wording.relative,
        "utc": wording.utc,
    }
    return environment


ENVIRONMENT = _environment()


def page(request: Request, template: str, *, status: int = 200, **view: Any) -> Response:
    """A page, or what is inside its frame if htmx asks for that."""
    return HTMLResponse(render(request, template, **view), status)


async def shared_page(request: Request, who: Hashable, template: str, view: Callable[[], object]) -> Response:
    """A page of which what is inside its frame is made once for all who ask for it after a change.

    It may differ by its address and by `who` looks, and by nothing else.
    """
    if not is_fragment(request):
        return await run_in_threadpool(lambda: page(request, template, view=view()))

    def fragment() -> bytes:
        return compressed(render(request, template, view=view()).encode())

    key = (template, request.url.path, request.url.query, who)
    content = await request.app.state.context.shared.get(key, fragment)
    return send(request, content, "text/html; charset=utf-8")


def render(request: Request, template: str, **view: Any) -> str:
    """The text of a page, as above."""
    query = request.url.query
    address = f"{request.url.path}?{query}" if query else request.url.path
    return ENVIRONMENT.get_template(template).render(
        base="fragment.html" if is_fragment(request) else "base.html",
        viewer=request.scope.get(USER),
        now=request.app.state.context.clock(),
        path=request.url.path,
        address=address if request.method == "GET" else "/",  # where one comes back to
        banner=request.app.state.context.settings.banner,
        theme=theme_of(request.headers),
        max_upload=request.app.state.context.settings.max_upload,
        **view,
    )


def is_fragment(request: Request) -> bool:
    """Whether htmx asks for what is inside a page's frame."""
    return HX in request.headers


def error(
    status: int, title: str, detail: str, next_step: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """What is wrong, and what to do then, as a page."""
    # Such advice is about another interface.
    advice = "" if next_step.startswith("GET ") else next_step
    scope = CURRENT.get()
    headers_asked = Headers(scope=scope) if scope else Headers()
    shown = ENVIRONMENT.get_template("error.html").render(
        base="fragment.html" if HX in headers_asked else "base.html",
        viewer=scope.get(USER) if scope else None,
        path="",
        address="/",
        banner=scope["app"].state.context.settings.banner if scope and "app" in scope else "",
        theme=theme_of(headers_asked),
        status=status,
        title=title[:1].upper() + title[1:],
        detail=detail,
        advice=advice,
        is_away=status == HTTPStatus.SERVICE_UNAVAILABLE,
    )
    return HTMLResponse(shown, status, headers)
