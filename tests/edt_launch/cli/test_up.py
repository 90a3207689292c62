import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import psutil
import pytest

from edt_launch.cli.commands import up as trial
from edt_launch.cli.errors import RefusedError
from ended import Edt
from started import started

FAKE = (sys.executable, str(Path(__file__).with_name("fake_serve.py")))


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    return tmp_path


def serve_as(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SERVE", (*FAKE, mode))


def up_as(mode: str) -> str:
    """A program that is `edt up --demo`, with a service that behaves as `mode` says."""
    return (
        "import sys\nfrom edt_launch.cli import main\nfrom edt_launch.cli.commands import up as trial\n"
        f"trial.SERVE = {(*FAKE, mode)!r}\nsys.argv = ['edt', 'up', '--demo']\nmain.main()"
    )


def left_in(folder: Path) -> list[object]:
    """Files, and command lines of processes, of a trial that has ended."""
    words = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [*folder.rglob("*"), *(line for line in words if any(str(folder) in word for word in line))]


def test_two_users_jobs_run_and_nothing_remains(
    edt: Edt, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_as("works", monkeypatch)
    ended = edt("up", "--demo")
    assert ended.code == 0
    assert "ada's job runs with 2 workers" in ended.err
    assert "/logon?once=edt_once\n" in ended.err
    assert [line.split()[:3] for line in ended.out.splitlines()] == [
        ["ada", "jadaada", "succeeded"],
        ["bob", "jbobbob", "succeeded"],
    ]
    assert left_in(folders) == []


def test_a_cluster_to_try_needs_ray(edt: Edt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ended = edt("up", "--ray", "3")
    assert (ended.code, "pip install 'edt-hvd[ray]'" in ended.err) == (2, True), ended.err


def test_a_service_that_does_not_start_says_why(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_as("fails", monkeypatch)
    with pytest.raises(RefusedError, match="there is no room"), trial.trial(4):
        pass
    assert left_in(folders) == []


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_everything(folders: Path, number: signal.Signals, code: int) -> None:
    program = up_as("endless")
    environment = {**os.environ, "TMPDIR": str(folders)}
    command = [sys.executable, "-c", program]
    with started(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        assert any("job runs with" in line for line in process.stderr)
        process.send_signal(number)
        assert process.wait(60) == code
    assert left_in(folders) == []


def test_q_ends_it_and_the_keyboard_is_as_before(folders: Path) -> None:
    command = [sys.executable, "-c", up_as("endless")]
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    environment = {**os.environ, "TMPDIR": str(folders), "TERM": "xterm"}
    with started(command, stdout=slave, stderr=slave, stdin=slave, env=environment) as process:
        shown = b""
        while b"devices used" not in shown:
            shown += os.read(master, 65536)
        os.write(master, b"xq")
        while b"ending the jobs" not in shown:
            shown += os.read(master, 65536)
        assert process.wait(60) == 130
    assert termios.tcgetattr(slave) == before
    os.close(slave)
    os.close(master)
    assert left_in(folders) == []
