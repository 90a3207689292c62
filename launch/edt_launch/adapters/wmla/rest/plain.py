"""Errors in WMLA's manner: a line of plain text, `Error 400: ...`."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Response

from edt_launch.service.errors import ServiceError

CHALLENGE = {"WWW-Authenticate": 'Basic realm="EDT"'}


class NotOfferedError(ServiceError):
    """What WMLA can and EDT cannot."""

    status = 501
    title = "not offered"


def tell(
    status: int, title: str, detail: str, next_step: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """An error's response; WMLA says 400 to whatever makes no sense."""
    code = HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
    # Advice that begins so is about another interface.
    advice = f"; {next_step}" if next_step and not next_step.startswith("GET ") else ""
    line = " ".join(f"{detail}{advice}".split()).rstrip(".")
    return Response(
        f"Error {int(code)}: {line}.\n", status_code=code, media_type="text/plain", headers=headers
    )


def of(error: ServiceError) -> Response:
    """The response of one of our own errors."""
    headers = CHALLENGE if error.status == HTTPStatus.UNAUTHORIZED else None
    return tell(error.status, error.title, error.detail, error.next_step, headers)
