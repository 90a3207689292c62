"""A service whose clock is set, and whose disk breaks and is mended; its jobs do not notice."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest
import requests
from attacked.service import Service

from bystander import Bystander, served
from edt_launch.core.files.atomic import write_atomically

pytestmark = pytest.mark.full

SHIMS = Path(__file__).parent / "shims"


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set(seconds: int, tmp_path: Path) -> None:
    """By an hour, and back, with another service in between; the jobs' clocks are set, too."""
    offset = tmp_path / "offset"
    service = Service(tmp_path / "a pool's folder")
    service.environment |= {"PYTHONPATH": str(SHIMS / "clock"), "CLOCK_OFFSET": str(offset)}
    with served(service):
        ann = Bystander(service)
        for change in (seconds, 0):
            write_atomically(offset, str(change))
            ann.resize(2)
            ann.ask()
            assert service.end() == 0
            service.start()
            service.ready()
            token = service.user(f"bob{change}")
            job = service.submit("brief.py", token=token)
            service.until(lambda job=job: service.job(job)["state"] == "succeeded")
            ann.resize(1)
            stopped = service.submit("brief.py", 3600, token=token)
            service.until(lambda job=stopped: service.has_begun(job))
            service.ask("POST", f"/jobs/{stopped}/stop", token=token).raise_for_status()
            service.until(lambda job=stopped: service.job(job)["state"] == "stopped")
        ann.finish()
        kinds = Counter(event["event"] for event in service.events(ann.job))
        assert kinds["begun"] == 1
        assert not {"failed", "restarting", "waiting"} & set(kinds)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes a folder read-only."""
    library = tmp_path_factory.mktemp("shims") / "read_only.so"
    source = str(SHIMS / "read_only.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), source, "-ldl"], check=True)
    return library


def test_a_folder_that_becomes_read_only_and_writable_again(read_only: Path, tmp_path: Path) -> None:
    """What has been acknowledged is kept, what cannot be kept is refused, and all goes on afterwards."""
    switch = tmp_path / "switch"
    service = Service(tmp_path / "a pool's folder")
    service.environment |= {
        "LD_PRELOAD": str(read_only),
        "READ_ONLY_ROOT": str(service.home.root),
        "READ_ONLY_SWITCH": str(switch),
    }
    with served(service, is_quiet=False):
        ann = Bystander(service)
        waiting = service.submit("brief.py", min=4, max=4)
        switch.touch()
        refused = service.post_job("brief.py")
        assert refused.status_code == requests.codes.service_unavailable, refused.text
        assert (
            service.ask("POST", "/tokens", json={"name": "t"}).status_code
            == requests.codes.service_unavailable
        )
        assert service.ask("POST", f"/jobs/{waiting}/stop").status_code == requests.codes.service_unavailable
        ann.ask()
        switch.unlink()
        assert {job["id"] for job in service.jobs()} == {ann.job, waiting}
        assert list(service.home.incoming.iterdir()) == []
        ann.resize(2)
        ann.resize(1)
        ann.ask()
        again = service.submit("brief.py")
        service.until(lambda: service.job(again)["state"] == "succeeded")
        ann.finish()
        service.until(lambda: service.job(waiting)["state"] == "succeeded")
