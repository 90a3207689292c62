import signal
import urllib.request
from pathlib import Path

import pytest

from edt_launch.service.database.records import JobRecord
from edt_launch.service.database.store import Store
from edt_launch.service.home import Home
from edt_launch.service.running import LOOP
from edt_launch.service.settings import Settings
from serving import PATIENCE, serving, start


def test_it_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "3") as service:
        assert service.url.startswith("http://127.0.0.1:")
        assert service.get("/api/v1/")["is_admin"]
        assert service.get("/api/v1/cluster")["free"] == 3
        # A stream does not keep it from ending.
        with urllib.request.urlopen(service.request("/api/v1/stream"), timeout=PATIENCE) as stream:
            assert stream.readline() == b"event: jobs\n"
            assert service.end() == 0
    assert not Home(tmp_path).server.exists()
    assert "at http://127.0.0.1" in (tmp_path / "output").read_text()


def test_killed_it_finds_everything_again(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "1") as service:
        token = service.token
        store = Store.opened(Settings(home=tmp_path).database_url)
        store.jobs.add(JobRecord("jaaaaaaaa", service.get("/api/v1/")["user"], ("true",), 1, 1, 1.0))
        store.close()
        service.end(signal.SIGKILL)
    with serving(tmp_path, "--slots", "1") as service:
        assert service.token == token
        assert [job["id"] for job in service.get("/api/v1/jobs")["jobs"]] == ["jaaaaaaaa"]


def test_there_is_one_for_each_folder(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "1"):
        second = start(tmp_path, "--slots", "1")
        assert second.wait(PATIENCE) == 2
        assert "another service is using it" in (tmp_path / "output").read_text()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--hostfile", "/no/such/file"], "No such file"),
        (["--database", "postgresql://ann:s3cret@127.0.0.1:1/edt"], "cannot be reached"),
        (["--host", "192.0.2.1"], "cannot be listened on"),
    ],
)
def test_what_keeps_it_from_starting_is_said(tmp_path: Path, arguments: list[str], said: str) -> None:
    process = start(tmp_path, *arguments)
    assert process.wait(PATIENCE) == 2
    output = (tmp_path / "output").read_text()
    assert said in output
    assert "Traceback" not in output
    assert "s3cret" not in output


def test_listening_to_others_without_tls_is_warned_of(tmp_path: Path) -> None:
    with serving(tmp_path, "--slots", "1", "--host", "0.0.0.0"):
        assert "unencrypted" in (tmp_path / "output").read_text()


def test_the_loop_is_the_pools() -> None:
    assert LOOP == "edt_launch.pool.loop"
