import re
import signal
import socket
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from sqlalchemy.exc import InterfaceError, OperationalError
from structlog.testing import capture_logs

from edt_launch.service.app import running
from edt_launch.service.app.home import Home
from edt_launch.service.app.running import repeat, urls
from edt_launch.service.app.settings import Settings
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import ExecRecord, JobRecord
from ended import Edt
from serving import PATIENCE, serving


@pytest.fixture
def serve(edt: Edt, monkeypatch: pytest.MonkeyPatch) -> Edt:
    """Run `edt serve` in this process, where it does not get as far as serving."""

    def too_far(*_: object) -> None:
        raise AssertionError("it serves")

    monkeypatch.setattr(running, "_serve", too_far)
    monkeypatch.setattr(running, "set_up_logs", lambda: None)
    monkeypatch.setattr(running, "raise_file_limit", lambda: None)
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    return lambda *words: edt("serve", "--port", "0", *words)


def refused(serve: Edt, *words: str) -> str:
    """Why a service does not start."""
    ended = serve(*words)
    assert ended.code == 2, ended
    for text in ("EDT serves", "Traceback", "mistake in edt", "s3cret"):
        assert text not in ended.out + ended.err
    return ended.err


def test_it_is_alone_and_finds_everything_again(tmp_path: Path, database_url: str, serve: Edt) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    database = ("--database", database_url)
    with serving(home, "--slots", "3", *database) as service:
        assert service.url.startswith("http://127.0.0.1:")
        assert service.get("/api/v1/")["is_admin"]
        assert service.get("/api/v1/cluster")["free"] == 3
        with socket.create_server(("127.0.0.1", 0)) as silent:
            # It does not wait for a database that does not answer before it says so.
            unanswered = f"postgresql://edt@127.0.0.1:{silent.getsockname()[1]}/edt"
            told = refused(serve, "--home", str(home), "--database", unanswered)
            assert "another service is using it" in told
            silent.settimeout(0)
            with pytest.raises(BlockingIOError):
                silent.accept()
        assert "another service is using it" in refused(serve, "--home", str(other), *database)
        store = Store.opened(database_url)
        store.jobs.add(JobRecord("jaaaaaaaa", service.get("/api/v1/")["user"], ("true",), 1, 1, 1.0))
        store.execs.reserve(lambda number: ExecRecord(number, "wmla-1", "driver-1", "wmla-1", ""))
        store.close()
        service.end(signal.SIGKILL)
    told = refused(serve, "--home", str(other), *database)
    assert f"start the service with --home {home}" in told
    with serving(home, "--slots", "1", "--host", "0.0.0.0", *database) as again:
        again.url = f"http://127.0.0.1:{again.url.rpartition(':')[2]}"
        assert again.token == service.token
        assert [job["id"] for job in again.get("/api/v1/jobs")["jobs"]] == ["jaaaaaaaa"]
        # A stream does not keep it from ending.
        with urllib.request.urlopen(again.request("/api/v1/stream"), timeout=PATIENCE) as stream:
            assert re.fullmatch(rb"retry: [1-3][0-9]{3}\n", stream.readline())
            assert again.end() == 0
    assert not Home(home).server.exists()
    printed = (home / "output").read_text()
    for text in ("EDT serves 1 device of 1 host at http://", "edt ui", "unencrypted"):
        assert text in printed
    store = Store.opened(database_url)
    assert store.execs.reserved() == []  # nor does it keep names whose job was never made
    store.close()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--hostfile", "/no/such/file"], "No such file"),
        (["--database", "postgresql://ann:s3cret@127.0.0.1:1/edt"], "cannot be reached"),
        (["--host", "192.0.2.1"], "cannot be listened on"),
        (["--tls-certificate", __file__, "--tls-key", __file__], "are no PEM files"),
        (["--database", "postgresql://ann:s3cret@127.0.0.1/edt?foo=bar"], "foo"),
        (["--database", "sqlite:////no/such/folder/edt.db"], "/no/such/folder/edt.db.lock: No such file"),
    ],
)
def test_what_keeps_it_from_starting_is_said(
    tmp_path: Path, serve: Edt, arguments: list[str], said: str
) -> None:
    assert said in refused(serve, "--home", str(tmp_path), *arguments)


def test_it_speaks_https(tmp_path: Path, edt: Edt, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a certificate of its own, which commands on this machine trust."""
    home = tmp_path / "home"
    with serving(home, "--slots", "3", "--tls-self-signed") as service:
        assert service.url.startswith("https://127.0.0.1:")
        monkeypatch.setenv("EDT_URL", service.url)
        monkeypatch.setenv("EDT_TOKEN", service.token)
        monkeypatch.setenv("EDT_HOME", str(home))
        assert edt("hosts").code == 0
        monkeypatch.setenv("EDT_HOME", "/nowhere")
        stranger = edt("hosts")
        assert stranger.code == 3
        assert "is not trusted" in stranger.err


def test_while_the_database_is_away_it_is_tried_again_and_a_mistake_ends_it() -> None:
    stop = threading.Event()
    gone = Exception("gone")
    left = iter([OperationalError("", {}, gone), InterfaceError("", {}, gone), None, KeyError()])

    def work() -> None:
        if (failure := next(left)) is not None:
            raise failure

    with pytest.raises(KeyError):
        repeat(work, 0.0, stop)
    assert list(left) == []


@pytest.mark.parametrize(
    "host, certificate, expected",
    [
        ("10.0.0.5", False, ("http://10.0.0.5:80", "http://10.0.0.5:80")),
        ("0.0.0.0", False, ("http://node:80", "http://127.0.0.1:80")),
        ("::", False, ("http://node:80", "http://[::1]:80")),
        ("0.0.0.0", True, ("https://node:80", "https://node:80")),
    ],
)
def test_commands_on_this_machine_need_no_host_name(
    host: str, certificate: bool, expected: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "certificate.pem" if certificate else None
    settings = Settings(home=tmp_path, host=host, tls_certificate=file, tls_key=file)
    assert urls(settings, 80, lambda: "node") == expected


def test_it_warns_of_jobs_that_are_not_apart_and_of_a_command_that_cannot_run(tmp_path: Path) -> None:
    with capture_logs() as logged:
        running._warn(Settings(home=tmp_path, notify="nosuch --mail"))
    said = {line["event"]: line.get("reason") for line in logged}
    assert said["the command for notices cannot run"] == "nosuch: command not found"
    apart = "all jobs run as one user and can read each other's files"
    assert apart in said
    with capture_logs() as logged:
        running._warn(Settings(home=tmp_path, notify="true", job_users="*=*"))
    assert not {line["event"] for line in logged} & said.keys()
