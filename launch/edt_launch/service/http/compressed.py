"""Answers that are kept compressed."""

import gzip

from fastapi import Request, Response

LEVEL = 5
"""Of compression: the higher ones take much longer and gain little."""


def compressed(content: bytes) -> bytes:
    """Content as gzip."""
    return gzip.compress(content, LEVEL, mtime=0)


def send(request: Request, content: bytes, media_type: str) -> Response:
    """The answer with this content, which is gzip; as it is for the few clients that do not take that."""
    headers = {"Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(content), media_type=media_type, headers=headers)
    return Response(content, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})
