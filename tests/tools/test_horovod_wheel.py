from pathlib import Path

import pytest

import horovod_wheel
from packages import ROOT

TORCH = "2.13.0+cpu"
WHEEL = "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
PATCHES = sorted((ROOT / "native" / "horovod").glob("*.patch"))


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the names of the wheels that are built; a wheel that holds ``rubbish`` cannot be installed."""
    builds: list[str] = []

    def succeeds(*command: str | Path) -> bool:
        if command[0] == "cmake":
            wheel = tmp_path / "a build's output" / "wheels" / WHEEL
            wheel.parent.mkdir(parents=True, exist_ok=True)
            wheel.write_text("good")
            builds.append(wheel.name)
        return command[0] != "uv" or Path(command[-1]).read_text() == "good"

    monkeypatch.setattr(horovod_wheel, "BUILD", tmp_path / "a build's output")
    monkeypatch.setattr(horovod_wheel, "succeeds", succeeds)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user's cache"))
    return builds


@pytest.mark.parametrize("cached", [None, "rubbish"])
def test_a_wheel_that_is_not_there_or_does_not_install_is_built_and_kept(
    built: list[str], cached: str | None
) -> None:
    entry = horovod_wheel.cache_entry(TORCH, None)
    if cached:
        entry.mkdir(parents=True)
        (entry / WHEEL).write_text(cached)
    assert horovod_wheel.install(TORCH, None) == f"kept in {entry}"
    assert horovod_wheel.install(TORCH, None) == f"reused {entry / WHEEL}"
    assert built == [WHEEL]
    assert [path.name for path in entry.iterdir()] == [WHEEL]


def test_each_torch_and_each_cuda_has_a_wheel_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    torches = [(TORCH, None), ("2.13.0+cu130", None), (TORCH, "13.0"), (TORCH, "12.8")]
    entries = {horovod_wheel.cache_entry(*torch) for torch in torches}
    assert len(entries) == 4
    assert {entry.parent for entry in entries} == {tmp_path / "edt" / "wheels"}
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert horovod_wheel.cache_entry(TORCH, None).parent == Path.home() / ".cache" / "edt" / "wheels"


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name[:4])
def test_each_change_of_horovod_says_why_and_where_it_was_reported(patch: Path) -> None:
    head, _, _ = patch.read_text().partition("\n---\n")
    _, _, message = head.partition("\nSubject: [PATCH] ")
    subject, reason, *_ = message.split("\n\n")
    assert subject
    assert reason
    assert "\nUpstream: " in message
