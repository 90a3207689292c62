"""Checkpoints that go to and come from a host which does not see the output directory."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_launch.agent import protocol
from edt_launch.agent.transfer.files import Files
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.hosts import checkpoint_transfer
from edt_launch.launcher.hosts.host_files import HostFiles
from edt_launch.launcher.hosts.transfers import TransferError, Transfers


class Host:
    """The folder of a job on another host, and the transfers to and from it."""

    def __init__(self, folder: Path) -> None:
        environment = {"XDG_CACHE_HOME": str(folder), "EDT_JOB": "abc"}
        self.transfers = Transfers(self._obey)
        self.files = Files(environment, "h1", self.transfers.take)
        self.transfers.folder = str(self.files.output)

    def _obey(self, order: protocol.Order) -> None:
        act = {
            protocol.Put: self.files.put,
            protocol.Piece: self.files.take,
            protocol.Fetch: self.files.fetch,
            protocol.List: lambda _: self.files.list(),
        }
        act[type(order)](order)  # type: ignore[operator]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host")
    yield host
    host.files.close()


def checkpoint(path: Path, content: bytes = b"weights" * 300_000) -> Path:
    path.mkdir(parents=True)
    (path / "state.pt").write_bytes(content)
    about = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (path / "manifest.json").write_text(json.dumps({"files": {"state.pt": about}}))
    return path


def fetch(host: Host, path: str, folder: Path, keep: int = 2) -> Path:
    return asyncio.run(checkpoint_transfer.fetch(host.transfers, path, folder, keep))


def test_checkpoints_are_fetched_whole_and_the_newest_are_kept(host: Host, tmp_path: Path) -> None:
    for number in (7, 8, 9, 9):
        name = f"checkpoint/step-{number:08}"
        if not (host.files.output / name).exists():
            checkpoint(host.files.output / name)
        fetched = fetch(host, name, tmp_path / "here")
        assert (fetched / "state.pt").read_bytes() == b"weights" * 300_000
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["step-00000008", "step-00000009"]


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (lambda path: (path / "state.pt").write_bytes(b"other"), "not what its manifest.json says"),
        (lambda path: (path / "state.pt").unlink(), "No such file"),
        (lambda path: (path / "manifest.json").write_text("{}"), "makes no sense"),
        (
            lambda path: (path / "manifest.json").write_text(
                json.dumps({"files": {"../../x": {"bytes": 1, "sha256": ""}}})
            ),
            "other files",
        ),
    ],
)
def test_of_a_damaged_checkpoint_nothing_is_kept(host: Host, tmp_path: Path, spoil, reason: str) -> None:
    spoil(checkpoint(host.files.output / "checkpoint/step-00000001"))
    with pytest.raises(TransferError, match=reason):
        fetch(host, "checkpoint/step-00000001", tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


def test_the_newest_whole_checkpoint_is_put(host: Host, tmp_path: Path) -> None:
    checkpoint(tmp_path / "here/step-00000009")
    (checkpoint(tmp_path / "here/step-00000010") / "state.pt").write_bytes(b"damaged")
    put = checkpoint_transfer.put_newest(host.transfers, tmp_path / "here", "checkpoint")
    assert asyncio.run(put) == "step-00000009"
    assert [path.name for path in (host.files.output / "checkpoint").iterdir()] == ["step-00000009"]
    none = checkpoint_transfer.put_newest(host.transfers, tmp_path / "nowhere", "checkpoint")
    assert asyncio.run(none) is None


def test_results_are_fetched_unless_others_were_or_they_are_the_launchers(host: Host, tmp_path: Path) -> None:
    output = tmp_path / "out"
    for folder in (output, host.files.output):
        (folder / "log").mkdir(parents=True, exist_ok=True)
        (folder / "run").mkdir(exist_ok=True)
        (folder / "log" / "edt-launch.log").write_text(folder.name)
    for name in ("model/train/a", "model/b", "run/x", "checkpoint/step-00000001/state.pt", "log/own"):
        path = host.files.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 3_000_000)
    files, fetched = HostFiles(RunDir(output), ["sleep"], tmp_path, None), {"model/b"}
    asyncio.run(files.fetch_results(host.transfers, fetched))
    assert fetched == {"model/b", "model/train/a", "log/own"}
    assert (output / "model" / "train" / "a").read_bytes() == b"x" * 3_000_000
    assert (output / "log" / "edt-launch.log").read_text() == "out"
    assert not (output / "model" / "b").exists()


def test_what_is_awaited_of_a_lost_host_fails(host: Host) -> None:
    async def lose() -> None:
        transfers = Transfers(lambda order: None)
        fetching = asyncio.create_task(transfers.fetch("a"))
        await asyncio.sleep(0)
        transfers.close("h1 is lost")
        for awaited in (fetching, transfers.fetch("b")):
            with pytest.raises(TransferError, match="h1 is lost"):
                await awaited

    asyncio.run(lose())
