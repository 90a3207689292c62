import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from sqlalchemy.exc import InterfaceError, OperationalError

from edt_launch.service.database.records import ExecRecord, JobRecord
from edt_launch.service.database.store import Store
from edt_launch.service.home import Home
from edt_launch.service.running import FILES, LOOP, raise_file_limit, repeat
from edt_launch.service.settings import Settings
from serving import PATIENCE, Service, serving, start
from tiers import full


def test_it_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "3") as service:
        assert service.url.startswith("http://127.0.0.1:")
        assert service.get("/api/v1/")["is_admin"]
        assert service.get("/api/v1/cluster")["free"] == 3
        # A stream does not keep it from ending.
        with urllib.request.urlopen(service.request("/api/v1/stream"), timeout=PATIENCE) as stream:
            assert re.fullmatch(rb"retry: [1-3][0-9]{3}\n", stream.readline())
            assert service.end() == 0
    assert not Home(tmp_path).server.exists()
    printed = (tmp_path / "output").read_text()
    assert "at http://127.0.0.1" in printed
    assert "edt ui" in printed


def test_killed_it_finds_everything_again(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "1") as service:
        token = service.token
        store = Store.opened(Settings(home=tmp_path).database_url)
        store.jobs.add(JobRecord("jaaaaaaaa", service.get("/api/v1/")["user"], ("true",), 1, 1, 1.0))
        store.execs.reserve(lambda number: ExecRecord(number, "wmla-1", "driver-1", "wmla-1", ""))
        store.close()
        service.end(signal.SIGKILL)
    with serving(tmp_path, "--slots", "1") as service:
        assert service.token == token
        assert [job["id"] for job in service.get("/api/v1/jobs")["jobs"]] == ["jaaaaaaaa"]
    store = Store.opened(Settings(home=tmp_path).database_url)
    assert store.execs.reserved() == []  # nor does it keep names whose job was never made
    store.close()


def test_there_is_one_for_each_folder(tmp_path: Path) -> None:
    """The second one waits for nothing, for a database that does not answer neither."""
    with serving(tmp_path, "--slots", "1"), socket.create_server(("127.0.0.1", 0)) as silent:
        database = f"postgresql://edt@127.0.0.1:{silent.getsockname()[1]}/edt"
        for arguments in ([], ["--database", database]):
            second = start(tmp_path, "--slots", "1", *arguments)
            assert second.wait(PATIENCE) == 2
            assert "another service is using it" in (tmp_path / "output").read_text()
        silent.settimeout(0)
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_there_is_one_for_each_database(tmp_path: Path, database_url: str) -> None:
    arguments = ("--slots", "1", "--database", database_url)
    with serving(tmp_path / "one", *arguments) as service:
        second = start(tmp_path / "two", *arguments)
        assert second.wait(PATIENCE) == 2
        assert "another service is using it" in (tmp_path / "two" / "output").read_text()
        assert service.get("/api/v1/")["is_admin"]  # its token is still good
    third = start(tmp_path / "two", *arguments)
    assert third.wait(PATIENCE) == 2
    assert f"start the service with --home {tmp_path}/one" in (tmp_path / "two" / "output").read_text()
    with serving(tmp_path / "one", *arguments) as again:
        assert again.token == service.token


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--hostfile", "/no/such/file"], "No such file"),
        (["--database", "postgresql://ann:s3cret@127.0.0.1:1/edt"], "cannot be reached"),
        full(["--host", "192.0.2.1"], "cannot be listened on"),
        full(
            ["--tls-certificate", "/no/such/cert", "--tls-key", "/no/such/key"], "/no/such/cert: No such file"
        ),
        (["--tls-certificate", __file__, "--tls-key", __file__], "are no PEM files"),
        full(["--database", "postgresql://ann:s3cret@127.0.0.1/edt?foo=bar"], "foo"),
        full(["--database", "sqlite:////no/such/folder/edt.db"], "/no/such/folder/edt.db.lock: No such file"),
        full(["--database", "sqlite://"], "name a file"),
    ],
)
def test_what_keeps_it_from_starting_is_said(tmp_path: Path, arguments: list[str], said: str) -> None:
    refused(start(tmp_path, *arguments), tmp_path, said)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database" * 100)
    process = start(tmp_path, "--slots", "1", "--database", f"sqlite:///{text}")
    refused(process, tmp_path, f"sqlite:///{text} cannot be used: file is not a database")


def test_a_file_in_place_of_its_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs").touch()
    refused(start(tmp_path, "--slots", "1"), tmp_path, f"{tmp_path}/jobs: File exists")


def refused(process: "subprocess.Popen[bytes]", home: Path, said: str) -> None:
    assert process.wait(PATIENCE) == 2
    output = (home / "output").read_text()
    assert said in output
    assert "EDT serves" not in output
    assert "Traceback" not in output
    assert "mistake in edt" not in output
    assert "s3cret" not in output


def test_it_speaks_https(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes a certificate, is not installed")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=edt", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    files = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    with serving(tmp_path / "home", "--slots", "3", *files) as service:
        assert service.url.startswith("https://127.0.0.1:")
        assert edt(service, "hosts", SSL_CERT_FILE=str(certificate)).returncode == 0
        stranger = edt(service, "hosts", SSL_CERT_FILE="/dev/null")
        assert stranger.returncode == 3
        assert b"is not trusted" in stranger.stderr


def test_it_makes_a_certificate_that_commands_on_this_machine_trust(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "3", "--tls-self-signed") as service:
        assert service.url.startswith("https://127.0.0.1:")
        assert edt(service, "hosts", EDT_HOME=str(tmp_path)).returncode == 0
        assert b"is not trusted" in edt(service, "hosts", EDT_HOME="/nowhere").stderr
        before = Home(tmp_path).tls.joinpath("certificate.pem").read_bytes()
    with serving(tmp_path, "--slots", "3", "--tls-self-signed"):
        assert Home(tmp_path).tls.joinpath("certificate.pem").read_bytes() == before


def edt(service: Service, *words: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    address = {"EDT_URL": service.url, "EDT_TOKEN": service.token}
    return subprocess.run(
        [sys.executable, "-m", "edt_launch.cli", *words],
        env=os.environ | address | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )


def test_listening_to_others_without_tls_is_warned_of(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "1", "--host", "0.0.0.0"):
        assert "unencrypted" in (tmp_path / "output").read_text()


def test_many_files_may_be_open() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(before[1], FILES), before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_loop_is_the_pools() -> None:
    assert LOOP == "edt_launch.jobs.loop"


def test_while_the_database_is_away_it_is_tried_again() -> None:
    stop, calls = threading.Event(), []
    failures = [
        OperationalError("", {}, Exception("gone")),
        InterfaceError("", {}, Exception("closed")),
        None,
    ]

    def work() -> None:
        calls.append(failures[len(calls)])
        if len(calls) == len(failures):
            stop.set()
        if calls[-1] is not None:
            raise calls[-1]

    repeat(work, 0.0, stop)
    assert calls == failures


def test_a_mistake_ends_it() -> None:
    def work() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        repeat(work, 0.0, threading.Event())
