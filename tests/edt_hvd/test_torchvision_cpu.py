"""The declarations that let the CUDA-built torchvision be imported beside a CPU torch."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from edt_hvd import torchvision_cpu
from interpreters import Interpreters

MODULE = Path(__file__).parents[2] / "edt_hvd" / "torchvision_cpu.py"
# Loads the module by its path: importing edt_hvd would call it before the test does.
PRELUDE = f"""
import importlib.util, sys
import torch
torch.version.cuda = torch.version.hip = None
spec = importlib.util.spec_from_file_location("torchvision_cpu", {str(MODULE)!r})
torchvision_cpu = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torchvision_cpu)
"""


@pytest.fixture(scope="module")
def fresh() -> Iterator[Interpreters]:
    """Processes in which no operator is declared yet."""
    with Interpreters("import torch") as found:
        yield found


def fake_torchvision(folder: Path, operators: bytes | None) -> str:
    """A folder for sys.path with a package of that name and, if given, its file of compiled operators."""
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    if operators is not None:
        (package / "_C.so").write_bytes(operators)
    return str(folder)


DECLARED = """
theirs = torch.library.Library("torchvision", "DEF")
theirs.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
DEFINE = """
print(torchvision_cpu.define_missing_operators(), torchvision_cpu.define_missing_operators())
print("torchvision" in sys.modules, torch.ops.torchvision.nms, torch.ops.torchvision.qnms)
"""


@pytest.mark.parametrize("before", ["", DECLARED], ids=["all", "those that nobody else has declared"])
def test_declares_operators_where_the_compiled_ones_do_not_load(
    fresh: Interpreters, tmp_path: Path, before: str
) -> None:
    path = fake_torchvision(tmp_path, operators=b"not a library")
    done = fresh.run(f"{PRELUDE}\nsys.path.insert(0, {path!r})\n{before}{DEFINE}")
    assert done.stdout.split() == ["True", "True", "False", "torchvision.nms", "torchvision.qnms"], (
        done.stderr
    )


@pytest.fixture
def absent(monkeypatch, tmp_path):
    """A torchvision that cannot load its operators, not prepared for yet, beside a torch for the CPU."""
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(fake_torchvision(tmp_path, operators=b"not a library"))
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torchvision_cpu, "_library", None)
    yield tmp_path / "torchvision"
    assert torchvision_cpu._library is None


def for_gpus(monkeypatch, absent):
    monkeypatch.setattr(torch.version, "cuda", "13.0")


def imported_already(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, "torchvision", sys)


def loads(monkeypatch, absent):
    monkeypatch.setattr(torch.ops, "load_library", lambda path: None)


def without_compiled_operators(monkeypatch, absent):
    (absent / "_C.so").unlink()


def not_installed(monkeypatch, absent):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    "arrange", [for_gpus, imported_already, loads, without_compiled_operators, not_installed]
)
def test_does_nothing_where_there_is_nothing_to_do(absent, monkeypatch, arrange):
    arrange(monkeypatch, absent)
    assert not torchvision_cpu.define_missing_operators()
