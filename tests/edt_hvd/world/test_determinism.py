"""What `init(deterministic=True)` sets, in processes of their own: it cannot be taken back."""

import os
import subprocess

import pytest
import torch

from edt_hvd.world.determinism import make_deterministic
from interpreters import Interpreters

SETTINGS = ("OMP_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG")
LOOK = """
import os, torch, edt_hvd
edt_hvd.init(deterministic=True)
edt_hvd.init()  # another one takes nothing back
print(
    torch.are_deterministic_algorithms_enabled(),
    torch.get_num_threads(),
    os.environ["CUBLAS_WORKSPACE_CONFIG"],
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark,
)
"""
REFUSED = """
zeros = torch.zeros(1, 1, 1, 1)
torch.nn.functional.max_unpool2d(zeros, zeros.long(), 2)
"""


def run(interpreters: Interpreters, program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return interpreters.run(program, clean | environ)


def test_an_operator_without_a_deterministic_version_is_refused(interpreters: Interpreters) -> None:
    done = run(interpreters, LOOK + REFUSED)
    assert done.stdout.strip() == "True 1 :4096:8 True False"
    assert "max_unpooling2d_forward_out does not have a deterministic implementation" in done.stderr


def test_what_the_environment_sets_stays(interpreters: Interpreters) -> None:
    done = run(interpreters, LOOK, OMP_NUM_THREADS="2,1", CUBLAS_WORKSPACE_CONFIG=":16:8")
    assert done.stdout.strip() == "True 2 :16:8 True False", done.stderr


@pytest.mark.parametrize("threads", ["abc", "0"])
def test_no_number_of_threads_is_refused(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    with pytest.raises(ValueError, match=f"OMP_NUM_THREADS={threads!r} .*unset it"):
        make_deterministic()
    assert not torch.are_deterministic_algorithms_enabled()
