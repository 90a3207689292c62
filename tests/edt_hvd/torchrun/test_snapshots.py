"""Snapshots in memory: when one is taken, and which one is found."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from edt_hvd.torchrun import latest_snapshot, snapshot, snapshots
from edt_hvd.torchrun.snapshots import FOLDER, Snapshots


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {FOLDER: tmp_path / "s", "LOCAL_RANK": 0, "EDT_GENERATION": 2}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(snapshots, "_snapshots", None)
    return tmp_path / "s"


def test_the_newest_alone_is_kept(tmp_path: Path) -> None:
    ours = Snapshots(tmp_path / "s")
    assert ours.newest() == (0, 0)
    for now in (1.0, 2.0):
        ours.is_wanted(now, 0.0)
        ours.take(now, 3, {"step": now})
    assert ours.newest() == (3, 2)
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["3-2"]
    assert Snapshots(tmp_path / "s").newest() == (3, 2)


def test_one_is_taken_every_so_many_seconds(folder: Path) -> None:
    assert not snapshot(lambda: pytest.fail("not yet"), every=1e6)
    assert snapshot(lambda: {"step": 1}, every=0.0)
    assert [path.name for path in folder.iterdir()] == ["2-2"]


def test_local_rank_0_alone_takes_them_and_nobody_without_a_launcher(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert not snapshot(lambda: pytest.fail("twice"), every=0.0)
    monkeypatch.delenv(FOLDER)
    monkeypatch.setattr(snapshots, "_snapshots", None)
    assert not snapshot(lambda: pytest.fail("nobody would read it"), every=0.0)


def test_the_next_generation_finds_it(folder: Path, tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        assert latest_snapshot() is None
        snapshot(lambda: {"weights": torch.ones(2), "step": 7}, every=0.0)
        found = latest_snapshot()
    finally:
        dist.destroy_process_group()
    assert found["step"] == 7
    assert torch.equal(found["weights"], torch.ones(2))
