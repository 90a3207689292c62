"""The declarations that let the CUDA-built torchvision be imported beside a CPU torch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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


def fake_torchvision(folder: Path) -> str:
    """A folder for sys.path with a package of that name, whose compiled operators are none."""
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    (package / "_C.so").write_bytes(b"not a library")
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
    path = fake_torchvision(tmp_path)
    done = fresh.run(f"{PRELUDE}\nsys.path.insert(0, {path!r})\n{before}{DEFINE}")
    assert done.stdout.split() == ["True", "True", "False", "torchvision.nms", "torchvision.qnms"], (
        done.stderr
    )
