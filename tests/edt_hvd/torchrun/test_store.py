"""The answers of the process that serves stores."""

import socket

from torch.distributed import TCPStore

from edt_hvd.torchrun.store import serve


def test_stores_are_opened_and_closed() -> None:
    orders = ["open 0"]
    answers = serve(iter_of(orders))
    port = next(answers)
    TCPStore("127.0.0.1", port, is_master=False).set("a", "b")
    orders.append(f"close {port}")
    assert next(answers) == port
    with socket.create_server(("", 0)) as other:
        orders.append(f"open {other.getsockname()[1]}")
        assert next(answers) == 0


def iter_of(orders: list[str]):
    while orders:
        yield orders.pop(0)
