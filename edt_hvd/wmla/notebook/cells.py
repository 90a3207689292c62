"""The script of a notebook: the cells that its kernel has run, in the order in which it has run them.

A cell that ran twice is there twice, one that failed is there, too, and the one that calls `train()` is the
last. IPython has turned what is no Python in them, such as ``!ls`` and ``%time``, into calls by then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

SCRIPT = """# The cells of a notebook, for the executors of its trainings.
import sys

sys.path[:] = {path!r} or sys.path
from edt_hvd.wmla.notebook.replay import replay

replay(
    [
{cells}    ],
    {variables!r},
    globals(),
)
"""


def cells_of(shell: Any) -> list[str]:
    """The cells that a kernel's shell has run, the present one included."""
    return [cell for cell in shell.history_manager.input_hist_parsed if cell.strip()]


def script_of(cells: Sequence[str], path: Sequence[str], variables: Mapping[str, str | None]) -> str:
    """The script.

    Args:
        cells: as `cells_of` gives them.
        path: what `sys.path` is to be; empty: as it is.
        variables: of the kernel's environment; None for those that it does not have.
    """
    lines = "".join(f"        {cell!r},\n" for cell in cells)
    return SCRIPT.format(path=list(path), cells=lines, variables=dict(variables))
