import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_launch.cli.client.configuration import Configuration
from edt_launch.cli.client.service import Service
from edt_launch.cli.client.transport import Http
from edt_launch.cli.commands.archives import save
from edt_launch.cli.errors import MistakenError, UnreachableError
from fake_service import TOKEN, FakeService


@pytest.fixture
def client(service: FakeService) -> Service:
    return Service(Http(Configuration(service.url, TOKEN, "the test")))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing remains."""
    yield tmp_path
    assert not list(tmp_path.iterdir())


def test_an_archive_that_breaks_off_leaves_no_file(
    service: FakeService, client: Service, folder: Path
) -> None:
    service.broken.append(lambda handler: handler.stream(["half"], is_whole=False))
    with pytest.raises(UnreachableError):
        save(client.archive("jaaaaaaaa", "results"), str(folder / "there"))


def test_a_file_that_cannot_be_written_is_a_mistake(client: Service, folder: Path) -> None:
    with pytest.raises(MistakenError, match=r"none/there: No such file.*--output"):
        save(client.archive("jaaaaaaaa", "results"), str(folder / "none" / "there"))


def test_results_go_to_standard_output_for_whoever_asks_for_that(
    service: FakeService, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "edt_launch.cli", "results", "train", "-o", "-"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=True)
    assert done.stdout == b"\x1f\x8b results"
    assert list(tmp_path.iterdir()) == []
