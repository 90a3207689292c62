"""Settings with which torch gives the same bits for the same work, for `init(deterministic=True)`."""

import functools
import os
import re

import torch

_set_num_threads = torch.set_num_threads


@functools.wraps(_set_num_threads)
def _note_and_set(number: int) -> None:
    """Note what the script has chosen; the number may be the one that torch has chosen, too."""
    _set_num_threads(number)
    vars(_note_and_set)["chosen"] = number


vars(_note_and_set)["chosen"] = None
torch.set_num_threads = _note_and_set  # type: ignore[assignment]  # a function all the same


def make_deterministic() -> None:
    """Choose deterministic operators, and a number of threads that does not depend on that of workers.

    One thread a worker, or OMP_NUM_THREADS, unless the script has set a number: sums inside an operator are
    grouped by threads. An operator that has no deterministic version raises a RuntimeError that names it,
    when it is used.

    Raises:
        ValueError: OMP_NUM_THREADS is neither a positive number nor a list of them.
    """
    threads = _threads(os.environ.get("OMP_NUM_THREADS", ""))
    # The larger of the two settings with which cuBLAS is deterministic, by its documentation.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if vars(_note_and_set)["chosen"] is None:
        _set_num_threads(threads)


def _threads(given: str) -> int:
    """What OMP_NUM_THREADS asks for: the first number of a list is that of the outermost level."""
    if not given.strip():
        return 1
    numbers = given.split(",")
    if not all(re.fullmatch(r"\s*0*[1-9][0-9]*\s*", number) for number in numbers):
        raise ValueError(
            f"OMP_NUM_THREADS={given!r} is no number of threads; set it to a positive number, such as 1, "
            "or unset it"
        )
    return int(numbers[0])
