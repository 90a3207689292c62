"""The launcher's end of agents, over real processes that behave and others that do not."""

import os
import re
import signal
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from edt_launch.agent import protocol
from edt_launch.agent.protocol import VERSION, Exited, Hello, Output, Probed, Started, Swept
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.hosts import host_agent
from edt_launch.launcher.hosts.host_events import AllEnded, Lost
from edt_launch.launcher.transports import choice
from edt_launch.launcher.transports.choice import Transports
from edt_launch.launcher.transports.ssh import Ssh
from edt_messages.runs import JobRun
from hearing import Hearing
from started import gone

GUIDE = Path(__file__).parents[4] / "docs" / "how-to" / "extending.md"


@pytest.fixture
def hearing(tmp_path: Path) -> Iterator[Hearing]:
    one = Hearing(tmp_path)
    yield one
    one.close()


@pytest.fixture
def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a program in the place of ssh, or of another command."""

    def fake(body: str, name: str = "ssh") -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent), prepend=":")

    return fake


def test_a_host_has_one_agent_for_all_of_its_workers(hearing: Hearing) -> None:
    for worker in (3, 4):
        hearing.agents.start("here", worker, {"EDT_WORKER": str(worker)})
    assert isinstance(hearing.until(Hello)[1], Hello)
    said = {hearing.until(Started | Output)[1] for _ in range(4)}
    assert {report.worker for report in said if isinstance(report, Started)} == {3, 4}
    assert {report.data for report in said if isinstance(report, Output)} == {b"3 here\n", b"4 here\n"}
    assert len(hearing.agents.pids) == 1
    hearing.agents.kill("here", 3)
    assert hearing.until(Exited)[1] == Exited(3, -signal.SIGKILL)
    hearing.agents.close()
    assert hearing.until(Exited)[1] == Exited(4, -signal.SIGKILL)
    assert hearing.until(Swept) == ("here", Swept(0))
    assert hearing.until(AllEnded) == ("", AllEnded())


def test_an_agent_that_is_killed_is_lost_and_the_next_worker_starts_another(hearing: Hearing) -> None:
    hearing.agents.start("here", 0, {"EDT_WORKER": "0"})
    pid = hearing.until(Started)[1].pid
    (agent,) = hearing.agents.pids
    os.kill(agent, signal.SIGKILL)
    host, lost = hearing.until(Lost)
    assert (host, lost.exit_code, lost.has_connected) == ("here", -signal.SIGKILL, True)
    assert lost.explanation == ("edt-launch: the agent of this host was killed by signal 9",)
    hearing.agents.start("here", 1, {"EDT_WORKER": "1"})
    assert hearing.until(Hello)[0] == "here"
    assert gone(pid)  # swept
    assert hearing.until(Started)[1].worker == 1


def test_workers_elsewhere_over_ssh(hearing: Hearing, fake_ssh: Callable[[str], None]) -> None:
    fake_ssh('for last; do :; done; exec sh -c "$last"')
    hearing.agents.start("far", 0, {"EDT_WORKER": "0"})
    host, output = hearing.until(Output)
    assert (host, output.data) == ("far", b"0 far\n")
    pids = []
    for at in ("here", "far"):  # a gang, whose first process is elsewhere
        hearing.agents.start(at, 1 + len(pids), {"EDT_WORKER": "1"}, "far")
        pids.append(hearing.until(Started)[1].pid)
    (port,) = {psutil.Process(pid).environ()["MASTER_PORT"] for pid in pids}
    with socket.socket() as stranger, pytest.raises(OSError, match="Address already in use"):
        stranger.bind(("", int(port)))
    hearing.agents.close()
    assert {hearing.until(Swept)[0] for _ in range(2)} == {"far", "here"}
    assert hearing.until(AllEnded)


def test_a_host_that_is_silent_is_lost(
    hearing: Hearing, fake_ssh: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_agent, "SILENCE_LIMIT", 0.1)
    fake_ssh('for last; do :; done; exec sh -c "$last"')
    hearing.agents.open("far")
    os.kill(hearing.until(Hello)[1].pid, signal.SIGSTOP)
    lost = hearing.until(Lost)[1]
    assert lost.explanation[0] == (
        "edt-launch: nothing has come from far for 0.1 s: the host or the way to it is down"
    )
    assert lost.gone_after == 2 * protocol.LEASE


def test_agents_find_out_which_of_them_they_reach(hearing: Hearing, fake_ssh: Callable[[str], None]) -> None:
    fake_ssh('for last; do :; done; exec sh -c "$last"')
    addresses = {"here": "127.0.0.1", "far": "127.0.0.1", "far off": "127.0.0.1"}
    for number, host in enumerate(addresses):
        hearing.agents.start(host, number, {"EDT_WORKER": "0"})
    for _ in addresses:
        hearing.until(Started)
    hearing.agents.probe(1, addresses)
    found = dict(hearing.until(Probed) for _ in addresses)
    assert {host: {*answer.reached} for host, answer in found.items()} == {
        host: addresses.keys() - {host} for host in addresses
    }
    hearing.agents.probe(2, {**addresses, "far": "192.0.2.1"})
    found = dict(hearing.until(Probed) for _ in addresses)
    assert found["here"] == Probed(2, ("far off",))


def test_what_a_run_of_the_job_before_has_left_on_a_host_is_killed(
    tmp_path: Path, fake_ssh: Callable[[str], None]
) -> None:
    host = "far"
    fake_ssh('for last; do :; done; exec sh -c "$last"')
    job = uuid.uuid4().hex
    runs = [Hearing(tmp_path, run=JobRun(job, number)) for number in (2, 3, 2)]

    def begin(run: Hearing) -> tuple[int, int]:
        run.agents.start(host, 0, {"EDT_WORKER": "0"})
        return run.agents.pids[0], run.until(Started)[1].pid

    try:
        before = begin(runs[0])
        os.kill(before[0], signal.SIGSTOP)  # it does not notice that its launcher has given it up
        after = begin(runs[1])
        assert [gone(pid) for pid in before] == [True, True]
        runs[2].agents.open(host)  # an agent that comes late
        lost = runs[2].until(Lost)[1]
        assert "this is run 2 of the job, and run 3 of it is on this host already" in lost.explanation[0]
        assert [gone(pid) for pid in after] == [False, False]
    finally:
        for one in runs:
            one.close()


def test_the_transport_of_the_guide_works_as_it_is_printed(
    tmp_path: Path, fake_ssh: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ssh('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "kubectl")
    (code,) = re.findall(r"```python\n(\"\"\"kubectl exec.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "kubectl"}
    exec(compile(code, str(GUIDE), "exec"), names)
    monkeypatch.setattr(choice, "TRANSPORTS", (names["KubectlExec"], *choice.TRANSPORTS))
    one = Hearing(tmp_path, variables={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert isinstance(Transports(RunOptions(), {}, lambda host: True).of("far"), Ssh)
    try:
        one.agents.start("far", 0, {"EDT_WORKER": "0"})
        host, output = one.until(Output)
        assert (host, output.data) == ("far", b"0 far\n")
        fake_ssh("echo 'Error from server (NotFound)' >&2; exit 1", "kubectl")
        one.agents.start("far off", 1, {"EDT_WORKER": "1"})
        assert one.until(Lost)[1].explanation[-1] == "edt-launch: there is no pod for far off"
    finally:
        one.close()


def test_a_host_decides_about_its_own_workers_alone(
    hearing: Hearing, fake_ssh: Callable[[str], None]
) -> None:
    hearing.agents.start("here", 0, {"EDT_WORKER": "0"})
    pid = hearing.until(Started)[1].pid
    said = (
        f'{{"kind": "hello", "version": {VERSION}, "pid": 1}}',
        '{"kind": "exited", "worker": 0, "exit_code": 0}',
    )
    fake_ssh(f"read -r x; printf '%s\\n' '{said[0]}' '{said[1]}'; exec sleep 60")
    hearing.agents.open("far")
    host, lost = hearing.until(Lost | Exited)
    assert (host, lost.reason) == (
        "far",
        "the agent of far has sent Exited of worker 0, which is not its own: far counts as lost",
    )
    assert psutil.pid_exists(pid)
