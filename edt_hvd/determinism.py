"""What torch needs to give the same bits for the same work: for `init(deterministic=True)`."""

import os

import torch

CUBLAS_WORKSPACE = ":4096:8"
"""The larger of the two settings with which cuBLAS is deterministic, by its documentation."""


def make_deterministic() -> None:
    """Choose deterministic operators, and a number of threads that does not depend on that of workers.

    One thread a worker, or OMP_NUM_THREADS: sums inside an operator are grouped by threads. An operator that
    has no deterministic version raises a RuntimeError that names it, when it is used.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACE)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1").split(",")[0]))  # it may be a list
