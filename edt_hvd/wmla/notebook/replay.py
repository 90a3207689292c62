"""Runs the cells of a notebook in an executor, as its kernel has run them, up to `train()`."""

import linecache
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edt_hvd.wmla.errors import WmlaError

RUN_AS_CODE = frozenset({"capture", "prun", "time", "timeit"})
"""Magics whose text is Python: it runs. All others belong to the notebook alone."""


def replay(cells: Sequence[str], variables: Mapping[str, str | None], namespace: dict[str, Any]) -> None:
    """Run cells. One that fails ends there, and the next one follows, as in a notebook.

    Args:
        cells: their sources, as IPython has transformed them.
        variables: of the environment, as they are in the kernel; None for those that it does not have.
        namespace: where they run.

    Raises:
        WmlaError: some have failed, and none has come to the training that this process is for.
    """
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

    def run(source: str, name: str = "<cell>") -> None:
        exec(compile(source, name, "exec", dont_inherit=True), namespace)

    shell = Shell(run)
    namespace.update(get_ipython=lambda: shell, display=lambda *_, **__: None)
    failed: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = f"<cell {number}>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        try:
            run(cell, name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a notebook goes on, too
            failed.append(f"cell {number}, {type(error).__name__}: {error}")
            print(f"cell {number} of the notebook:", file=sys.stderr)
            traceback.print_exc()
    if failed:
        raise WmlaError(
            f"the cells of the notebook did not come to train() in an executor; {failed[0]} failed first"
        )


class Shell:
    """What cells find as `get_ipython()`: runs code that is to be timed, and nothing else.

    Commands of the system, such as ``!pip install``, files that a cell has written with a magic, and settings
    of the notebook are the kernel's.
    """

    def __init__(self, run: Callable[[str], None]) -> None:
        self._run = run

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> None:
        """``%name line``."""
        if name in RUN_AS_CODE:
            self._run(line)

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """``%%name line``, and the cell below it."""
        if name in RUN_AS_CODE:
            self._run(cell)

    def getoutput(self, *_: Any, **__: Any) -> list[str]:
        """``lines = !command``."""
        return []

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None
