"""Sending what is kept compressed."""

import gzip

from fastapi import Request, Response


def send(request: Request, content: bytes, media_type: str) -> Response:
    """The answer with this content, which is gzip; as it is for the few clients that do not take that."""
    headers = {"Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(content), media_type=media_type, headers=headers)
    return Response(content, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})
