import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_service import TRAIN, CliService, client_of
from edt_launch.cli.commands.archives import save
from edt_launch.cli.errors import MistakenError, UnreachableError
from scripted import scripted, stream


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing remains."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    yield folder
    assert not list(folder.iterdir())


def test_an_archive_that_breaks_off_leaves_no_file(folder: Path) -> None:
    with scripted(stream(["half"], is_whole=False)) as server:
        client = client_of(server.url)
        with pytest.raises(UnreachableError):
            save(client.archive(TRAIN, "results"), str(folder / "there"))


def test_a_file_that_cannot_be_written_is_a_mistake(service: CliService, folder: Path) -> None:
    with pytest.raises(MistakenError, match=r"none/there: No such file.*--output"):
        save(service.client_side().archive(TRAIN, "results"), str(folder / "none" / "there"))


def test_results_go_to_standard_output_for_whoever_asks_for_that(service: CliService, folder: Path) -> None:
    (service.files(TRAIN).train / "weights.pt").write_bytes(b"w" * 1234)
    command = [sys.executable, "-m", "edt_launch.cli", "results", "train", "-o", "-"]
    done = subprocess.run(command, capture_output=True, cwd=folder, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert "model/train/weights.pt" in archive.getnames()
