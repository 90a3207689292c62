from collections.abc import AsyncIterator

import anyio
import pytest
from starlette.requests import Request
from starlette.types import Message

from edt_launch.adapters.wmla.submission.form import Form, read_form
from edt_launch.service.errors import InvalidError

END = b"\r\n--x--\r\n"


def part(disposition: str, content: bytes = b"text") -> bytes:
    head = f"--x\r\nContent-Disposition: form-data; {disposition}\r\nContent-Type: text/plain\r\n\r\n"
    return head.encode() + content


def request(body: bytes, kind: str = "multipart/form-data; boundary=x") -> Request:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({"type": "http", "headers": [(b"content-type", kind.encode())]}, receive)


def test_files_are_read_with_and_without_names_and_closed() -> None:
    body = b"\r\n".join(
        [part('name="file"', bytes(2**21)), part('name="data"', b"{}"), part('name="file"; filename="a.py"')]
    )

    async def check() -> Form:
        forms: AsyncIterator[Form] = read_form(request(body + END))
        form = await anext(forms)
        assert [(one.name, len(one.file.read())) for one in form.parts] == [("", 2**21), ("a.py", 4)]
        assert [one async for one in forms] == []
        return form

    form = anyio.run(check)
    assert form.data == "{}"
    assert all(one.file.closed for one in form.parts)


def read(body: bytes, kind: str = "multipart/form-data; boundary=x") -> Form:
    async def first() -> Form:
        return await anext(read_form(request(body, kind)))

    return anyio.run(first)


def test_a_client_that_is_gone_is_no_mistake_of_the_service() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    asked = Request(
        {"type": "http", "headers": [(b"content-type", b"multipart/form-data; boundary=x")]}, receive
    )

    async def first() -> Form:
        return await anext(read_form(asked))

    with pytest.raises(InvalidError, match="the connection ended"):
        anyio.run(first)
