"""Checkpoints of programs: noticed when they are whole, whatever writes them."""

import io
import os
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp

from edt_hvd.torchrun.saves import ASYNCHRONOUS, FUNCTIONS, TO_MEMORY, Saves


@pytest.fixture
def saves() -> Saves:
    return Saves()


@pytest.fixture
def noticed(monkeypatch: pytest.MonkeyPatch, saves: Saves) -> list[bool]:
    stub = types.ModuleType("safetensors.torch")
    stub.save_file = lambda tensors, filename: None  # type: ignore[attr-defined]
    stub.save = lambda tensors: b"content"  # type: ignore[attr-defined]
    package = types.ModuleType("safetensors")
    package.torch = stub  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "safetensors", package)
    monkeypatch.setitem(sys.modules, "safetensors.torch", stub)
    for module, name in (*FUNCTIONS, *TO_MEMORY, *ASYNCHRONOUS):
        found = import_module(module)
        monkeypatch.setattr(found, name, getattr(found, name))  # and put back
    seen: list[bool] = []
    saves.on_change = seen.append
    saves.install()
    return seen


STATE = {"a": torch.ones(3)}


def test_torch_save_to_a_file(noticed: list[bool], tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "a.pt")
    with (tmp_path / "b.pt").open("wb") as file:
        torch.save(STATE, file)
    assert noticed == [True, False, True, False]


def test_what_goes_to_memory_counts_when_it_is_written(
    noticed: list[bool], saves: Saves, tmp_path: Path
) -> None:
    import safetensors.torch  # type: ignore[import-not-found, unused-ignore]

    buffer = io.BytesIO()
    torch.save(STATE, buffer)
    Path(__file__).read_bytes()
    saves.forget_memory()
    (tmp_path / "log").write_text("x")
    assert noticed == []
    torch.save(STATE, buffer)
    (tmp_path / "a.pt").write_bytes(buffer.getvalue())
    (tmp_path / "log").write_text("x")
    assert noticed == [True, False]
    content = safetensors.torch.save(STATE)
    os.close(os.open(tmp_path / "a.safetensors", os.O_WRONLY | os.O_CREAT))
    assert content
    assert noticed == [True, False] * 2


def test_a_failed_save_is_over(noticed: list[bool], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        torch.save(STATE, tmp_path / "none" / "a.pt")
    assert noticed == [True, False]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:TypedStorage is deprecated")
def test_distributed_checkpoints_count_once(noticed: list[bool], tmp_path: Path) -> None:
    dcp.save(dict(STATE), checkpoint_id=tmp_path / "c", no_dist=True)
    assert noticed == [True, False]
