"""A running service whose connections strangers hold."""

import contextlib
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from serving import Service, start

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def connect(service: Service) -> socket.socket:
    address = urlsplit(service.url)
    assert address.port
    return socket.create_connection((str(address.hostname), address.port))


@pytest.mark.full
def test_half_requests_without_end_keep_nobody_out(tmp_path: Path) -> None:
    home = tmp_path / "home"
    process = start(home, files=300)
    try:
        service = Service(home, process)
        with contextlib.ExitStack() as stack:
            for _ in range(400):
                half = stack.enter_context(connect(service))
                with contextlib.suppress(ConnectionError):
                    half.sendall(HALF)
            for _ in range(20):
                assert service.get("/healthz")["status"] == "ok"
            assert service.get("/api/v1/")["user"]
        lines = (home / "output").read_text().splitlines()
        assert len(lines) < 40, lines
        assert service.end() == 0
    finally:
        process.kill()
        process.wait()
