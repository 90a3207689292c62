"""Server-sent events."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Request

MEDIA_TYPE = "text/event-stream"

KEEP_ALIVE = b": still here\n\n"
"""A comment, so that nobody between here and there thinks the connection dead."""

KEEP_ALIVE_INTERVAL = 15.0
"""Seconds of silence after which it is sent."""

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events, or JSON", "content": {MEDIA_TYPE: {}}}
}
"""For the description of an endpoint that can do both."""


def wanted(request: Request) -> bool:
    """Whether the client asks for server-sent events."""
    return MEDIA_TYPE in request.headers.get("accept", "")


def message(data: Mapping[str, object] | str, event: str | None = None, number: int | None = None) -> bytes:
    """One event; `data` as JSON is one line."""
    text = data if isinstance(data, str) else json.dumps(data)
    head = (f"event: {event}\n" if event else "") + (f"id: {number}\n" if number is not None else "")
    return f"{head}data: {text}\n\n".encode()
