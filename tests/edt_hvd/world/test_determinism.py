"""What `init(deterministic=True)` sets, in processes of their own: it cannot be taken back."""

import os
import subprocess
import sys

import pytest
import torch

from edt_hvd.world.determinism import make_deterministic
from tiers import full

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
REFUSE = """
import torch, edt_hvd
edt_hvd.init(deterministic=True)
torch.nn.functional.max_unpool2d(torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.int64), 2)
"""


def run(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [sys.executable, "-c", program], env=clean | environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "environ, expected",
    [
        ({}, "True 1 :4096:8 True False"),
        full({"OMP_NUM_THREADS": ""}, "True 1 :4096:8 True False"),
        ({"OMP_NUM_THREADS": "2,1", "CUBLAS_WORKSPACE_CONFIG": ":16:8"}, "True 2 :16:8 True False"),
    ],
)
def test_what_is_set(environ: dict[str, str], expected: str) -> None:
    done = run(LOOK, **environ)
    assert done.stdout.strip() == expected, done.stderr


def test_the_number_of_threads_that_the_script_has_set_stays() -> None:
    sets = "import torch, edt_hvd\ntorch.set_num_threads(3)\n"
    assert run(sets + LOOK, OMP_NUM_THREADS="2").stdout.split()[1] == "3"


def test_torchs_own_number_of_threads_stays_where_the_script_has_set_it() -> None:
    sets = "import torch, edt_hvd\nprint(n := torch.get_num_threads())\ntorch.set_num_threads(n)\n"
    threads, _, kept, *_ = run(sets + LOOK).stdout.split()
    assert kept == threads


@pytest.mark.parametrize("threads", ["abc", "0", "-1", "2,", "2,0"])
def test_no_number_of_threads_is_refused(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    with pytest.raises(ValueError, match=f"OMP_NUM_THREADS={threads!r} .*unset it"):
        make_deterministic()
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_operator_without_a_deterministic_version_is_named() -> None:
    done = run(REFUSE)
    assert "max_unpooling2d_forward_out does not have a deterministic implementation" in done.stderr
