"""The declarations that let the CUDA-built torchvision be imported beside a CPU torch."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from edt_hvd import torchvision_cpu

HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None

# Loads the module by its path: importing edt_hvd would call it before the test does.
PRELUDE = """
import importlib.util, sys
import torch
torch.version.cuda = torch.version.hip = None
spec = importlib.util.spec_from_file_location("torchvision_cpu", sys.argv[1])
torchvision_cpu = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torchvision_cpu)
"""


def run(program: str, *arguments: str) -> str:
    """What a fresh interpreter prints; which operators are declared is state of the whole process."""
    module = Path(__file__).parents[2] / "edt_hvd" / "torchvision_cpu.py"
    command = [sys.executable, "-W", "error", "-c", PRELUDE + program, str(module), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def fake_torchvision(folder: Path, operators: bytes | None) -> str:
    """A folder for sys.path with a package of that name and, if given, its file of compiled operators."""
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    if operators is not None:
        (package / "_C.so").write_bytes(operators)
    return str(folder)


@pytest.mark.skipif(not HAS_TORCHVISION, reason="torchvision is not installed")
def test_torchvision_can_be_imported_and_used():
    program = """
torchvision_cpu.define_missing_operators()
import torchvision
from torchvision.transforms import v2
model = torchvision.models.resnet18().eval()
image = v2.Resize(40)(torch.zeros(1, 3, 32, 32))
print(tuple(model(image).shape))
"""
    assert run(program) == "(1, 1000)"


def test_declares_operators_where_the_compiled_ones_do_not_load_and_only_once(tmp_path):
    program = """
sys.path.insert(0, sys.argv[2])
print(torchvision_cpu.define_missing_operators(), torchvision_cpu.define_missing_operators())
print("torchvision" in sys.modules, torch.ops.torchvision.nms)
"""
    path = fake_torchvision(tmp_path, operators=b"not a library")
    assert run(program, path).split() == ["True", "True", "False", "torchvision.nms"]


def test_operators_that_somebody_else_has_declared_are_left_alone(tmp_path):
    program = """
sys.path.insert(0, sys.argv[2])
theirs = torch.library.Library("torchvision", "DEF")
theirs.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
print(torchvision_cpu.define_missing_operators(), hasattr(torch.ops.torchvision, "qnms"))
"""
    assert run(program, fake_torchvision(tmp_path, operators=b"not a library")) == "True True"


@pytest.fixture
def absent(monkeypatch, tmp_path):
    """A torchvision that cannot load its operators, not prepared for yet, beside a torch for the CPU."""
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(fake_torchvision(tmp_path, operators=b"not a library"))
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torchvision_cpu, "_library", None)
    yield tmp_path / "torchvision"
    assert torchvision_cpu._library is None


@pytest.mark.parametrize("toolkit", ["cuda", "hip"])
def test_does_nothing_with_a_torch_for_gpus(absent, monkeypatch, toolkit):
    monkeypatch.setattr(torch.version, toolkit, "13.0")
    assert not torchvision_cpu.define_missing_operators()


def test_does_nothing_when_torchvision_is_imported_already(absent, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", sys)
    assert not torchvision_cpu.define_missing_operators()


def test_does_nothing_where_the_compiled_operators_load(absent, monkeypatch):
    monkeypatch.setattr(torch.ops, "load_library", lambda path: None)
    assert not torchvision_cpu.define_missing_operators()


def test_does_nothing_where_torchvision_has_no_compiled_operators(absent):
    (absent / "_C.so").unlink()
    assert not torchvision_cpu.define_missing_operators()


def test_does_nothing_without_torchvision(absent, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not torchvision_cpu.define_missing_operators()
