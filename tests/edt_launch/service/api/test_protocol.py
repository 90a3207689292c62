import asyncio

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from edt_launch.service.api import protocol
from edt_launch.service.api.protocol import TimedProtocol
from edt_launch.service.listening import Connections

HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


async def answers(*requests: bytes) -> bytes:
    """All that one connection is sent until it is closed."""
    config = uvicorn.Config(PlainTextResponse("hello"), log_config=None, lifespan="off")
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    connections = Connections(9, 9)
    server = await loop.create_server(
        lambda: TimedProtocol(config, state, {}, connections=connections), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        found = b""
        for request in requests:
            writer.write(request)
            found += (
                await reader.readuntil(b"hello") if request.endswith(b"\r\n\r\n") else await reader.read()
            )
        writer.close()
    return found


@pytest.fixture(autouse=True)
def head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD", 0.05)


@pytest.mark.parametrize("half", [HALF, b"", b"G"])
def test_the_head_of_a_request_has_a_time(half: bytes) -> None:
    assert asyncio.run(answers(half)).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
