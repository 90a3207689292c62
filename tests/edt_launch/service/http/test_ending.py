import asyncio
import json

from starlette.types import Message, Receive, Scope, Send

from edt_launch.service.http.ending import Ending

SCOPE = {"type": "http", "method": "GET", "path": "/"}


async def nothing() -> Message:
    raise AssertionError


def test_a_request_that_is_cancelled_is_told_that_the_service_ends() -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.set()
        await asyncio.sleep(3600)

    async def send(message: Message) -> None:
        sent.append(message)

    async def serve() -> None:
        task = asyncio.create_task(Ending(app)(SCOPE, nothing, send))
        await reached.wait()
        task.cancel()
        await task

    reached = asyncio.Event()
    asyncio.run(serve())
    start, body = sent
    assert start["status"] == 503
    assert json.loads(body["body"])["detail"] == "the service is ending"
