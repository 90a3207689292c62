import os
import pty
import subprocess
import sys
import tempfile
import termios
from collections import Counter
from pathlib import Path

import psutil
import pytest

from cli_service import EVAL, TRAIN, CliService
from edt_launch.cli.commands import up as trial
from edt_launch.cli.errors import RefusedError
from edt_launch.service.jobs.states import State, Wanted
from ended import Edt
from started import started
from world import NOW

LOOKS = 4

SERVE = """
import json, pathlib, signal, subprocess, sys
url, token, home = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[sys.argv.index("--home") + 1])
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
# Something that works in the folder and would outlive the service.
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", home], start_new_session=True)
(home / "token").write_text(token)
(home / "server.json").write_text(json.dumps({"url": url}))
signal.pause()
"""
"""In place of `edt serve`: tells of the service that the test has."""


class Played:
    """Jobs run whenever they are looked at, until they have been looked at some times, or are to stop."""

    def __init__(self, service: CliService, looks: int = 10**9) -> None:
        self._jobs = service.store.jobs
        self._looks: Counter[str] = Counter()
        self._most = looks

    def __call__(self) -> None:
        for job in self._jobs.live():
            self._looks[job.id] += 1
            if job.state is State.QUEUED:
                self._jobs.move(job.id, State.STARTING, "", NOW)
                self._jobs.move(job.id, State.RUNNING, "", NOW, size=2)
            elif job.wanted is Wanted.STOP:
                self._jobs.move(job.id, State.STOPPING, "", NOW)
                self._jobs.move(job.id, State.STOPPED, "", NOW, size=0)
            elif self._looks[job.id] > self._most:
                self._jobs.move(job.id, State.SUCCEEDED, "", NOW, size=0)


@pytest.fixture
def pool(service: CliService) -> CliService:
    """A service without jobs and users."""
    for job in (TRAIN, EVAL):
        service.go(job, State.FAILED)
        service.store.jobs.delete(job)
    service.admin.delete("/users/bob")
    return service


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "temporary files"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def serving(pool: CliService) -> tuple[str, ...]:
    """The command in place of `edt serve`."""
    return (sys.executable, "-c", SERVE, pool.url, pool.tokens["admin"])


def up_command(pool: CliService) -> list[str]:
    """`edt up --demo` in a process of its own."""
    program = (
        "import sys\nfrom edt_launch.cli import main\nfrom edt_launch.cli.commands import up as trial\n"
        f"trial.SERVE = {serving(pool)!r}\nsys.argv = ['edt', 'up', '--demo']\nmain.main()"
    )
    return [sys.executable, "-c", program]


def left_in(folder: Path) -> list[object]:
    """Files, and command lines of processes, of a trial that has ended."""
    words = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [*folder.rglob("*"), *(line for line in words if any(str(folder) in word for word in line))]


def test_two_users_jobs_run_and_nothing_remains(
    edt: Edt, pool: CliService, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.at_request = Played(pool, LOOKS)
    monkeypatch.setattr(trial, "SERVE", serving(pool))
    ended = edt("up", "--demo")
    assert ended.code == 0, ended.err
    assert "ada's job runs with 2 workers" in ended.err
    assert "/logon?once=edt_" in ended.err
    assert [line.split()[0::2][:2] for line in ended.out.splitlines()] == [
        ["ada", "succeeded"],
        ["bob", "succeeded"],
    ]
    assert left_in(folder) == []


def test_a_cluster_to_try_needs_ray(edt: Edt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ended = edt("up", "--ray", "3")
    assert (ended.code, "pip install 'edt-hvd[ray]'" in ended.err) == (2, True), ended.err


def test_a_service_that_does_not_start_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = (sys.executable, "-c", "import sys; sys.exit('edt serve: --slots 4: there is no room')")
    monkeypatch.setattr(trial, "SERVE", fails)
    with pytest.raises(RefusedError, match="there is no room"), trial.trial(4):
        pass
    assert left_in(folder) == []


def test_a_signal_ends_everything(pool: CliService, folder: Path) -> None:
    pool.at_request = Played(pool)
    with started(up_command(pool), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("job runs with" in line for line in process.stderr)
        process.terminate()
        assert process.wait(60) == 143
    assert {job.state for job in pool.store.jobs.page().jobs} == {State.STOPPED}
    assert left_in(folder) == []


def test_q_ends_it_and_the_keyboard_is_as_before(
    pool: CliService, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.at_request = Played(pool)
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    with started(up_command(pool), stdout=slave, stderr=slave, stdin=slave) as process:
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
    assert left_in(folder) == []
