"""Errors as `application/problem+json` (RFC 9457), with the next step beside."""

import errno
import json
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from edt_launch.cluster.allocation import HOST
from edt_launch.core.text.masking import hides
from edt_launch.service import names
from edt_launch.service.app.home import JOB_ID, SEARCH_ID
from edt_launch.service.db.engine import AWAY
from edt_launch.service.errors import InvalidError, ServiceError, UnavailableError
from edt_launch.service.expectations import expected
from edt_launch.service.experiments.spec import EXPERIMENT_ID, RUN_ID

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"

SAFE: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer that does not set them itself."""


class Problem(BaseModel):
    """An error."""

    type: str = Field(description="Names the kind of error.")
    title: str = Field(description="The kind of error in a few words.")
    status: int = Field(description="HTTP's status code.")
    detail: str = Field(description="What is wrong here.")
    next: str = Field(description="What to do; may be empty.")


def response(
    status: int, title: str, detail: str, next_step: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """An error's response."""
    name = HTTPStatus(status).phrase.lower().replace(" ", "-").replace("'", "")
    body = {
        "type": f"urn:edt:problem:{name}",
        "title": title,
        "status": status,
        "detail": detail,
        "next": next_step,
    }
    content = json.dumps(body).encode()
    return Response(content, status_code=status, media_type=MEDIA_TYPE, headers={**SAFE, **(headers or {})})


Tell = Callable[[int, str, str, str, Mapping[str, str] | None], Response]
"""Makes a response of an error: like `response`."""


def of(error: ServiceError, tell: Tell = response) -> Response:
    """The response of one of our own errors."""
    headers = {"WWW-Authenticate": "Bearer"} if error.status == HTTPStatus.UNAUTHORIZED else None
    return tell(error.status, error.title, error.detail, error.next_step, headers)


def invalid(errors: Sequence[Any]) -> InvalidError:
    """What is wrong with a request, from pydantic's errors: where, and what is expected."""
    return InvalidError("; ".join(map(_told, errors[:5])), "GET /openapi.json describes every request")


_WORDS: Mapping[str, str] = {
    names.USER: "a user's name: letters, digits and any of _ . @ -, 64 characters at most",
    names.OWNER: "a user's name: letters, digits and any of _ . @ -, 64 characters at most",
    names.OWNERS: "users' names, with commas between",
    names.TAG: "a tag: letters, digits and any of _ . -, 64 characters at most, and no . or - first",
    names.VARIABLE: "a variable's name: letters, digits and _, and no digit first",
    names.PLAIN: "one line of text",
    HOST: "a host's name: letters, digits and any of _ . -",
    JOB_ID: "a job's id, such as jabcdefgh",
    SEARCH_ID: "a search's id, such as habcdefgh",
    EXPERIMENT_ID: "an experiment's id, such as xabcdefgh",
    RUN_ID: "a run's id, such as rabcdefgh",
}
"""What texts have to be that have to match a pattern."""

_WHOLE = re.compile(r"\^(?:\((.*)\)\?|(.*))\$")
"""A pattern of a whole text, which may be allowed to be empty."""


def _expected(error: Any) -> str:
    """What pydantic expects, in words."""
    whole = _WHOLE.fullmatch(error.get("ctx", {}).get("pattern", ""))
    words = _WORDS.get(whole[1] or whole[2]) if whole else None
    if words:
        return f"expected {words}"
    return expected(error)


def _told(error: Any) -> str:
    own = str(error["msg"]).removeprefix("Value error, ")
    if own.startswith("Expected UploadFile"):  # FastAPI's own words
        return f"{error['loc'][1]}: expected a file: a part of the form that has a file name"
    match error["loc"]:
        case ("body", int()):  # FastAPI's own position in the body
            return f"the body is no JSON: {error['ctx']['error']}"
        case ("body", "spec", *inside) | (("body" | "query" | "path" | "header"), *inside) | inside if inside:
            where = [str(part) for part in inside]
        case whole:
            where = [str(part) for part in whole[-1:]]
    if own == error["msg"]:
        own = _expected(error)
        is_secret = any(part == "environment" or hides(str(part)) for part in error["loc"])
        is_short = isinstance(error.get("input"), str | float | int)
        if error["type"] != "json_invalid" and is_short and not is_secret:
            own = f"{error['input']!r:.80}: {own}"
    elif where == ["spec"] or (where and own.startswith(f"{where[-1]}: ")):  # it names the field itself
        where.pop()
    return ": ".join([".".join(where), own] if where else [own])


def no_database(error: Exception) -> UnavailableError:
    """What clients are told while the database does not answer; the log has the reason."""
    log.error("the database does not answer", reason=str(error))
    return UnavailableError("the service's database does not answer", "try again in a moment")


_DISK = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "is full",
    errno.EROFS: "is read-only",
    errno.EIO: "has failed",
}
"""What is the matter with the disk, by what the system says when something is to be written."""


def _methods(request: Request) -> str:
    """What is possible at a request's path: each of its methods has a route of its own."""

    def is_possible(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)

    possible = list(filter(is_possible, ("DELETE", "GET", "PATCH", "POST", "PUT")))
    return ", ".join(sorted([*possible, "HEAD"] if "GET" in possible else possible))


def describe(app: FastAPI) -> None:
    """Have the description of the interface tell that every error is a problem."""
    describe_rest = app.openapi
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = describe_rest()
            schemas = description["components"]["schemas"]
            schemas["Problem"] = Problem.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own form of errors
                schemas.pop(name, None)
            for operations in description["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    operation["responses"]["default"] = {"description": "An error", "content": content}
            app.openapi_schema = description
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def add_handlers(app: FastAPI, tell: Tell = response) -> None:
    """Have every error told, as a problem unless `tell` does it otherwise."""

    async def _known(_: Request, error: Any) -> Response:
        if isinstance(error, RequestValidationError | ValidationError):
            error = invalid(error.errors())
        elif isinstance(error, AWAY):
            error = no_database(error)
        return of(error, tell)

    for kind in (ServiceError, RequestValidationError, ValidationError, *AWAY):
        app.add_exception_handler(kind, _known)

    @app.exception_handler(OSError)
    async def _disk(_: Request, error: OSError) -> Response:
        if error.errno not in _DISK:
            raise error
        log.error("the disk cannot be used", reason=str(error))
        what = f"the service's disk {_DISK[error.errno]}"
        return of(UnavailableError(what, "tell its administrator, then try again"), tell)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _DISK:  # FastAPI could not keep the body
            return await _disk(request, cause)
        status = HTTPStatus(error.status_code)
        detail = {
            HTTPStatus.NOT_FOUND: f"there is nothing at {request.url.path!r}",
            HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible at {request.url.path!r}",
        }.get(status, str(error.detail))
        headers = dict(error.headers or {})
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = _methods(request)
        advice = "GET /openapi.json describes every request"
        return tell(status, status.phrase.lower(), detail, advice, headers)

    @app.exception_handler(Exception)
    async def _mistake(_: Request, error: Exception) -> Response:
        advice = "tell the administrator; the service's log has more"  # the server logs it
        return tell(500, ServiceError.title, f"{type(error).__name__}", advice, None)
