"""The parts of our changes to Horovod that no worker without a GPU runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from packages import ROOT

HERE = Path(__file__).parent
PATCHES = sorted((ROOT / "native" / "horovod").glob("*.patch"))
GUARD = "horovod/common/ops/abort_guard.h"
COMPILE = ("c++", "-std=c++17", "-w", "-pthread", "-ffunction-sections", "-fdata-sections")
OPERATIONS = ("ops/nccl_operations", "ops/cuda_operations", "ops/gpu_operations")
COMMON = ("common", "thread_pool", "utils/env_parser")
DEFINED = ("HAVE_GPU=1", "HAVE_CUDA=1", "HAVE_NCCL=1", "HAVE_GLOO=1", "EIGEN_MPL2_ONLY=1")


def added(path: str) -> str:
    """The text of a file that one of the patches adds."""
    (rest,) = (after for each in PATCHES if (after := each.read_text().partition(f"\n+++ b/{path}\n")[2]))
    _, *lines = rest.partition("\ndiff --git ")[0].splitlines()
    return "".join(f"{line[1:]}\n" for line in lines)


def run(program: Path) -> None:
    done = subprocess.run([program], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_was_aborted_fails(tmp_path: Path) -> None:
    (tmp_path / "abort_guard.h").write_text(added(GUARD))
    program = tmp_path / "program"
    subprocess.run([*COMPILE, f"-I{tmp_path}", "-o", program, HERE / "abort_guard.cpp"], check=True)
    run(program)


@pytest.mark.full
def test_horovods_waits_for_nccl_end_with_an_abort(tmp_path: Path) -> None:
    """Its sources are compiled for a device whose kernels wait until their communicator is aborted."""
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:")
    package = (*pip, "--no-build-isolation", "--dest", tmp_path, "horovod==0.28.1")
    subprocess.run(package, check=True)
    subprocess.run(["tar", "xf", tmp_path / "horovod-0.28.1.tar.gz", "-C", tmp_path], check=True)
    source = tmp_path / "horovod-0.28.1"
    for patch in PATCHES:
        subprocess.run([sys.executable, "-m", "patch_ng", f"--directory={source}", patch], check=True)
    third = source / "third_party"
    include = [HERE / "fake_cuda", source, third / "eigen", third / "gloo", third / "lbfgs" / "include"]
    include += [
        third / "flatbuffers" / "include",
        third / "HTTPRequest" / "include",
        *third.glob("boost/*/include"),
    ]
    options = [*(f"-I{path}" for path in include), *(f"-D{name}" for name in DEFINED)]
    sources = [source / "horovod" / "common" / f"{name}.cc" for name in (*OPERATIONS, *COMMON)]
    command = [*COMPILE, *options, "-Wl,--gc-sections", "-o", tmp_path / "program", HERE / "nccl_abort.cpp"]
    subprocess.run([*command, *sources], check=True)
    run(tmp_path / "program")
