"""The finder that has torchvision prepared; whole interpreters, as each has its own finders and operators."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / "edt_hvd" / "torchvision_hook.py"
INSTALLED = Path(sysconfig.get_path("platlib"), "_edt_torchvision.py")


def run(program: str, *options: str) -> str:
    """What an interpreter prints."""
    command = [sys.executable, "-W", "error", *options, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_installed_module_is_this_one():
    assert INSTALLED.read_text() == HOOK.read_text(), "run: make setup"


def test_interpreters_load_nothing_for_it():
    program = "import importlib.util, sys; importlib.util.find_spec('torchvision'); print(*sys.modules)"
    loaded = run(program).split()
    assert "_edt_torchvision" in loaded
    assert not {"torch", "edt_hvd", "torchvision"} & set(loaded)
    loads = "import torchvision_hook; print(*(set(sys.modules) - before))"
    program = f"import sys; before = set(sys.modules); sys.path.insert(0, {str(HOOK.parent)!r}); {loads}"
    assert run(program, "-S") == "torchvision_hook"


def test_torchvision_works_whatever_is_imported_first():
    pytest.importorskip("torchvision")
    program = """
from torchvision.transforms import v2
import torchvision, torch, edt_hvd
assert torch.ops.torchvision.nms
model = torchvision.models.resnet18(num_classes=3).eval()
print(tuple(model(v2.Resize(40)(torch.zeros(1, 3, 32, 32))).shape))
"""
    assert run(program) == "(1, 3)"
