import asyncio
import json
from collections.abc import Sequence

from starlette.types import Message, Receive, Scope, Send

from edt_launch.service.http.ending import Ending

SCOPE = {"type": "http", "method": "GET", "path": "/"}


async def nothing() -> Message:
    raise AssertionError


def cancelled(answered: Sequence[Message]) -> list[Message]:
    """What is sent by a request that has sent that much and is cancelled then."""
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in answered:
            await send(message)
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
    return sent


def test_a_request_that_is_cancelled_is_told_that_the_service_ends() -> None:
    start, body = cancelled([])
    assert start["status"] == 503
    assert json.loads(body["body"])["detail"] == "the service is ending"
