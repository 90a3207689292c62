"""A server that may break: each request gets the next of some answers as it is."""

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import parse_headers
from typing import Any


@dataclass(frozen=True)
class Said:
    """Bytes of an answer, and whether the connection stays open after them."""

    data: bytes = b""
    is_kept: bool = False


HANGS_UP = Said()


def said(content: Any, kind: str = "application/json") -> Said:
    """A whole answer: JSON, or bytes of that kind."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    return Said(head.encode() + data, is_kept=True)


def stream(lines: Sequence[str], is_whole: bool = True) -> Said:
    """Lines one after the other; the end is missing if it is not whole."""
    chunks = [b"%x\r\n%b\n\r\n" % (len(line) + 1, line.encode()) for line in lines]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Said(head + b"".join(chunks) + b"0\r\n\r\n" * is_whole, is_whole)


class Scripted(socketserver.ThreadingTCPServer):
    """Attributes: asked: methods of the requests. After the last answer none comes."""

    daemon_threads = True

    def __init__(self, answers: Sequence[Said]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = [*answers]
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.StreamRequestHandler):
    server: Scripted

    def handle(self) -> None:
        while line := self.rfile.readline():
            self.server.asked.append(line.decode().split()[0])
            self.rfile.read(int(parse_headers(self.rfile).get("Content-Length") or 0))
            if self.server.answers:
                answer = self.server.answers.pop(0)
                self.wfile.write(answer.data)
                if not answer.is_kept:
                    return


@contextlib.contextmanager
def scripted(*answers: Said) -> Iterator[Scripted]:
    with Scripted(answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
