"""Ports of a range: those of our own sockets, and those that the preloaded library chooses."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from edt_launch.core.system.ports import PortRange, PortsUsedError, bound, listening, preloaded

SIZE = 6


@pytest.fixture
def ports() -> Iterator[PortRange]:
    """A range in which nothing listens."""
    for low in range(20000 + os.getpid() % 100 * 100, 32000, SIZE):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(low, low + SIZE):
                    stack.enter_context(socket.socket()).bind(("", port))
            except OSError:
                continue
        yield PortRange(low, low + SIZE - 1)
        return


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def test_every_port_of_a_range_is_used_and_none_besides(ports: PortRange) -> None:
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(bound("", ports))]
        found += [stack.enter_context(listening("127.0.0.1", ports)) for _ in range(SIZE - 1)]
        found[0].listen()
        assert {port_of(each) for each in found} == set(range(ports.low, ports.high + 1))
        with pytest.raises(PortsUsedError, match=rf"no port of --port-range {ports} is free on .*: give a"):
            listening("", ports)
        with pytest.raises(OSError, match="assign"):
            listening("192.0.2.1", ports)


def test_a_port_whose_connection_has_just_ended_is_used_when_no_other_is_left(ports: PortRange) -> None:
    one = PortRange(ports.low, ports.low)
    with listening("127.0.0.1", one) as listener, socket.create_connection(listener.getsockname()) as client:
        listener.accept()[0].close()  # this end waits for late packets from now on
        client.recv(1)
    with listening("127.0.0.1", one) as again:
        assert port_of(again) == ports.low


CHOOSING = """
import json, socket, sys
kept, said = [], {}
def keep(name, found, listens=True):
    kept.append(found)
    if listens:
        found.listen()
    said[name] = found.getsockname()[1]
four, six, silent = socket.socket(), socket.socket(socket.AF_INET6), socket.socket()
four.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
four.bind(("127.0.0.1", 0))
keep("IPv4", four)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
six.bind(("::1", 0))
keep("IPv6", six)
keep("not bound", silent)
for name in ("shared", "shared, too"):
    shared = socket.socket()
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    shared.bind(("", 0))
    keep(name, shared)
datagram = socket.socket(type=socket.SOCK_DGRAM)
datagram.bind(("", 0))
keep("datagram", datagram, listens=False)
options = [four.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)]
options.append(shared.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))
again = socket.socket()
again.bind(("", int(sys.argv[1])))
said["named"] = again.getsockname()[1]
refused = []
for _ in range(3):
    one = socket.socket()
    try:
        one.bind(("", 0))
        kept.append(one)
    except OSError as error:
        refused.append(error.strerror)
print(json.dumps([said, options, refused]))
"""


def test_whatever_listens_in_a_worker_gets_its_ports_from_the_range(ports: PortRange) -> None:
    given = {**os.environ, "EDT_PORT_RANGE": str(ports), "LD_PRELOAD": ""}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        named = port_of(taken)
    own = preloaded(given)
    done = subprocess.run(
        [sys.executable, "-c", CHOOSING, str(named)],
        env={**given, **own}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, options, refused = json.loads(done.stdout)
    inside = set(range(ports.low, ports.high + 1))
    assert said.pop("named") == named
    assert said.pop("datagram") not in inside
    assert set(said.values()) <= inside
    # Of IPv4 and IPv6 both may have the same one.
    assert len({port for name, port in said.items() if name != "IPv6"}) == 4
    assert options == [1, 1]
    assert refused
    assert set(refused) == {"Address already in use"}
    assert done.stderr == f"edt: no port of --port-range {ports} is free on this host: give a larger range\n"


def test_without_a_range_nothing_is_preloaded_and_what_the_user_preloads_stays() -> None:
    assert preloaded({"LD_PRELOAD": "/lib/x.so"}) == {}
    ours = preloaded({"EDT_PORT_RANGE": "20000:20009"})["LD_PRELOAD"]
    assert os.path.isfile(ours)
    both = {"EDT_PORT_RANGE": "20000:20009", "LD_PRELOAD": "/lib/x.so"}
    assert preloaded(both) == {"LD_PRELOAD": f"{ours}:/lib/x.so"}
