import anyio
import pytest
from starlette.requests import Request
from starlette.types import Message

from edt_launch.adapters.wmla.submission.form import Form, read_form
from edt_launch.service.errors import InvalidError


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
