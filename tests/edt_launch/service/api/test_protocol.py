import asyncio

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from edt_launch.service.api import protocol
from edt_launch.service.api.protocol import TimedProtocol
from edt_launch.service.listening import Connections

HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


async def answer_to(request: bytes) -> bytes:
    """All that a connection is sent until it is closed."""
    config = uvicorn.Config(PlainTextResponse("hello"), log_config=None, lifespan="off")
    config.load()
    state, connections = ServerState(), Connections(9, 9)
    server = await asyncio.get_running_loop().create_server(
        lambda: TimedProtocol(config, state, {}, connections=connections), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(request)
        found = await reader.read()
        writer.close()
    return found


@pytest.fixture(autouse=True)
def head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD", 0.05)


@pytest.mark.parametrize("half", [HALF, b"", b"G"])
def test_the_head_of_a_request_has_a_time(half: bytes) -> None:
    assert asyncio.run(answer_to(half)).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
