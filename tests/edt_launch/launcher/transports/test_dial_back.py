"""Agents that dial back: real ones, and connections that are none."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edt_launch.agent import dial_back, protocol
from edt_launch.agent.network.invitation import VARIABLE, Answer, Greeting, Invitation
from edt_launch.agent.protocol import Hello, Output, Swept
from edt_launch.launcher.hosts.host_events import AllEnded, Lost
from edt_launch.launcher.transports import dial_back as launchers_end
from edt_launch.launcher.transports import greeting_listener
from edt_launch.launcher.transports.dial_back import DialBack
from hearing import Hearing
from started import gone

AGENT = (sys.executable, "-P", "-m", "edt_launch.agent.dial_back")


class Engine(DialBack):
    """Starts an agent on the same machine, whatever the host's name, and keeps what it has started."""

    def __init__(self) -> None:
        super().__init__(["127.0.0.1"])
        self.started: list[subprocess.Popen[str]] = []
        self.stopped: list[str] = []

    def start(self, host: str) -> None:
        self.started.append(dialing(self.invitation, host))

    def stop(self, host: str) -> None:
        self.stopped.append(host)


def dialing(invitation: Invitation, host: str, *options: str) -> subprocess.Popen[str]:
    """An agent that dials back, with what it says."""
    variables = {**os.environ, VARIABLE: invitation.text}
    return subprocess.Popen([*AGENT, host, *options], env=variables, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[tuple[Hearing, DialBack]]:
    transport = DialBack(["127.0.0.1"])
    one = Hearing(tmp_path, transport)
    yield one, transport
    one.close()


def said_by(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def greeting(transport: DialBack, host: str = "far") -> Greeting:
    return Greeting(transport.invitation.token, host, protocol.VERSION, "x")


def answered(transport: DialBack, line: str) -> str:
    """The refusal that a connection with this first line gets; "closed" for no answer."""
    with (
        socket.create_connection(("127.0.0.1", transport.invitation.port)) as plain,
        dial_back.client_context().wrap_socket(plain) as connection,
    ):
        connection.settimeout(60)
        try:
            connection.sendall(line.encode() + b"\n")  # the launcher may close before it has read all
            answer = connection.makefile().readline()
        except OSError:
            answer = ""
        return Answer.parse(answer).refused if answer else "closed"


def test_an_engine_starts_agents_that_dial_back(tmp_path: Path) -> None:
    engine = Engine()
    one = Hearing(tmp_path, engine)
    try:
        for worker, host in enumerate(["far", "here"]):
            one.agents.start(host, worker, {"EDT_WORKER": str(worker)})
        printed = {host: output.data for host, output in (one.until(Output) for _ in range(2))}
        assert printed == {"far": b"0 far\n", "here": b"1 here\n"}
        one.agents.close()
        assert {one.until(Swept)[0] for _ in range(2)} == {"far", "here"}
        assert one.until(AllEnded) == ("", AllEnded())
    finally:
        one.close()
    assert [said_by(agent) for agent in engine.started] == [(0, "")]
    assert engine.stopped == ["far"]


def test_an_agent_that_stays_waits_before_and_after_it_is_wanted(
    launcher: tuple[Hearing, DialBack], tmp_path: Path
) -> None:
    one, transport = launcher
    file = tmp_path / "invitation"
    file.write_text(transport.invitation.text)
    agent = subprocess.Popen([*AGENT, "far", str(file), "--stay"], stderr=subprocess.PIPE, text=True)
    one.agents.open("far")
    pid = one.until(Hello)[1].pid
    os.kill(pid, 9)
    lost = one.until(Lost)[1]
    assert (lost.exit_code, lost.gone_after) == (-9, 2 * protocol.LEASE)
    one.agents.open("far")
    assert one.until(Hello)[1].pid != pid
    second = dialing(transport.invitation, "far")
    code, said = said_by(second)
    assert code
    assert "far: the launcher refuses this host: far has an agent already" in said
    one.close()
    assert said_by(agent) == (0, "")


def test_an_agent_that_does_not_come_again_is_not_waited_for_without_limit(
    launcher: tuple[Hearing, DialBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers_end, "RETURN_TIMEOUT", 0.1)
    one, transport = launcher
    agent = dialing(transport.invitation, "far")
    one.agents.open("far")
    one.until(Hello)
    one.agents.close()
    one.until(AllEnded)
    transport.dismiss(7)
    assert said_by(agent) == (0, "")


def test_a_launcher_that_is_gone_ends_the_workers(launcher: tuple[Hearing, DialBack]) -> None:
    one, transport = launcher
    agent = dialing(transport.invitation, "far")
    one.agents.start("far", 0, {"EDT_WORKER": "0"})
    pid = one.until(protocol.Started)[1].pid
    one.agents.abandon()
    assert one.until(Lost)[1].exit_code
    assert said_by(agent)[0] == 0
    assert gone(pid)


REFUSED: list[tuple[Callable[[DialBack], str], str]] = [
    (lambda to: replace(greeting(to), token="guessed").text, "its token is not this job's"),
    (lambda to: replace(greeting(to), version=99).text, "version 99 of the agent's messages"),
    (lambda to: "GET / HTTP/1.0", "closed"),
    (lambda to: json.dumps({**vars(greeting(to)), "more": 1}), "closed"),
    (lambda to: "x" * 2**18, "closed"),
    (lambda to: "", "closed"),
]


def test_who_is_refused_disturbs_nobody(
    launcher: tuple[Hearing, DialBack],
) -> None:
    one, transport = launcher
    for line, reason in REFUSED:
        assert reason in answered(transport, line(transport))
    agent = dialing(transport.invitation, "far")
    one.agents.open("far")
    assert one.until(Hello)[0] == "far"
    one.close()
    assert said_by(agent)[0] == 0


def test_a_host_that_an_engine_gives_up_is_lost_at_once(tmp_path: Path) -> None:
    class Full(Engine):
        def start(self, host: str) -> None:
            self.give_up(host, "no node has room")

    one = Hearing(tmp_path, Full())
    one.agents.open("far")
    lost = one.until(Lost)[1]
    one.close()
    assert "no node has room" in lost.explanation
    assert not lost.has_connected


def test_who_is_silent_makes_room(
    launcher: tuple[Hearing, DialBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, transport = launcher
    monkeypatch.setattr(greeting_listener, "MAX_UNAUTHENTICATED", 2)
    where = ("127.0.0.1", transport.invitation.port)
    silent = [socket.create_connection(where) for _ in range(4)]
    agent = dialing(transport.invitation, "far")
    one.agents.open("far")
    assert one.until(Hello)[0] == "far"
    assert silent[0].recv(1) == b""
    one.close()
    assert said_by(agent)[0] == 0
    for connection in silent:
        connection.close()


def test_an_agent_tells_its_secrets_to_its_launcher_alone(launcher: tuple[Hearing, DialBack]) -> None:
    _, transport = launcher
    other = replace(transport.invitation, fingerprint="0" * 64)
    code, said = said_by(dialing(other, "far"))
    assert code
    assert "far: the launcher cannot be reached: 127.0.0.1: another certificate" in said
    with pytest.raises(OSError):  # noqa: PT011 - its alert may be lost in the reset
        asyncio.run(plain_tls_1_2(transport.invitation.port))
    assert transport.invitation.token not in repr(transport.invitation)


async def plain_tls_1_2(port: int) -> None:
    context = dial_back.client_context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    await asyncio.open_connection("127.0.0.1", port, ssl=context)
