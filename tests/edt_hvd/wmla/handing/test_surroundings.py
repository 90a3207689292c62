import os
from pathlib import Path

import pytest
import torch
from torch import multiprocessing

from edt_hvd.wmla.handing import surroundings
from edt_hvd.wmla.handing.surroundings import Surroundings


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where a script begins; what it sets is put back afterwards."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("KEPT", "1"), ("LOST", "1"), ("DEVICES", "")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NEW", raising=False)
    monkeypatch.setattr(surroundings, "_environment", {})
    monkeypatch.setattr(surroundings, "_directory", "")
    surroundings.note()


def of_the_script(found: Surroundings) -> dict[str, tuple[str | None, str | None]]:
    return {name: values for name, values in found.environment.items() if name != "PYTEST_CURRENT_TEST"}


def test_what_the_script_sets_is_set_in_another_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.setenv("NEW", "2")
    monkeypatch.delenv("LOST")
    monkeypatch.setenv("DEVICES", "0")
    monkeypatch.chdir(there)
    torch.set_default_dtype(torch.float64)
    multiprocessing.set_sharing_strategy("file_system")
    try:
        found = Surroundings.now()
    finally:
        torch.set_default_dtype(torch.float32)
        multiprocessing.set_sharing_strategy("file_descriptor")
    assert of_the_script(found) == {"DEVICES": ("", "0"), "LOST": ("1", None), "NEW": (None, "2")}

    monkeypatch.delenv("NEW")
    monkeypatch.setenv("LOST", "1")
    monkeypatch.setenv("DEVICES", "3")  # what this one was given
    monkeypatch.chdir(tmp_path)
    try:
        found.adopt()
        assert Path.cwd() == tmp_path
        found.enter()
        assert torch.get_default_dtype() is torch.float64
        assert multiprocessing.get_sharing_strategy() == "file_system"
    finally:
        torch.set_default_dtype(torch.float32)
        multiprocessing.set_sharing_strategy("file_descriptor")
    assert (os.environ["NEW"], "LOST" in os.environ, os.environ["DEVICES"]) == ("2", False, "3")
    assert Path.cwd() == there


def test_nothing_set_is_nothing_changed() -> None:
    assert of_the_script(Surroundings.now()) == {}
