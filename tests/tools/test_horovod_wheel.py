import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import collect_wheels
import horovod_wheel
from horovod_wheel import ROOT, Torch

TORCH = Torch("2.13.0+cpu", None, "/base", ())
PATCHES = sorted((ROOT / "native" / "horovod").glob("*.patch"))


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "a build's output" / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("horovod/__init__.py", "version = 1\n" * 100)
    return path


def test_a_kept_wheel_is_found_and_replaced_and_leaves_nothing_beside(tmp_path: Path, wheel: Path) -> None:
    entry = tmp_path / "user's cache" / "key"
    assert horovod_wheel.find(entry) is None
    for _ in range(2):
        horovod_wheel.keep(wheel, entry)
        kept = horovod_wheel.find(entry)
        assert kept is not None
        assert kept.read_bytes() == wheel.read_bytes()
    assert [path.name for path in entry.parent.iterdir()] == ["key"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_wheel_is_as_good_as_absent(tmp_path: Path, wheel: Path, damage: str) -> None:
    horovod_wheel.keep(wheel, tmp_path / "key")
    kept = tmp_path / "key" / wheel.name
    content = kept.read_bytes()
    if damage == "gone":
        kept.unlink()
    else:
        kept.write_bytes(content[:-1] if damage == "cut" else content.replace(b"version", b"versiom", 1))
    assert horovod_wheel.find(tmp_path / "key") is None


def test_each_torch_and_each_cuda_has_a_wheel_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(horovod_wheel, "cuda_wanted", lambda: True)
    torches = [
        TORCH,
        replace(TORCH, version="2.13.0+cu130"),
        replace(TORCH, cuda="13.0"),
        replace(TORCH, cuda="12.8"),
    ]
    entries = {horovod_wheel.cache_entry(torch, {"XDG_CACHE_HOME": str(tmp_path)}) for torch in torches}
    assert len(entries) == 4
    assert {entry.parent for entry in entries} == {tmp_path / "edt" / "wheels"}
    home = horovod_wheel.cache_entry(TORCH, {"XDG_CACHE_HOME": "relative"}).parent
    assert home == Path.home() / ".cache" / "edt" / "wheels"


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name[:4])
def test_each_change_of_horovod_says_why_and_where_it_was_reported(patch: Path) -> None:
    head, _, _ = patch.read_text().partition("\n---\n")
    _, _, message = head.partition("\nSubject: [PATCH] ")
    subject, reason, *_ = message.split("\n\n")
    assert subject
    assert reason
    assert "\nUpstream: " in message


def test_the_patches_are_numbered_without_a_gap() -> None:
    assert [int(patch.name[:4]) for patch in PATCHES] == list(range(1, len(PATCHES) + 1))
    assert len(PATCHES) > 0


def test_wheels_for_older_and_newer_systems_are_taken() -> None:
    names = collect_wheels.platforms("x86_64")
    assert {"manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"} <= set(names)
    assert "manylinux_2_34_x86_64" not in names
