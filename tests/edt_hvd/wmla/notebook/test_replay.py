import inspect
from typing import Any

import pytest

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.notebook.replay import replay


def test_cells_share_what_they_define_and_know_their_sources() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    replay(["def f():\n    return 1\n", "a = f()\n", "a += f()\n", "a += f()\n"], {}, namespace)
    assert namespace["a"] == 3
    assert inspect.getsource(namespace["f"]) == "def f():\n    return 1\n"


def test_a_cell_that_fails_ends_there_and_the_next_follows(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {}
    cells = ["a = 1\nraise ValueError('x')\na = 2\n", "b = a + 1\n", "exit_code = 1 / 0\n", "if True\n"]
    with pytest.raises(WmlaError, match="; cell 1, ValueError: x failed first"):
        replay(cells, {}, namespace)
    assert (namespace["a"], namespace["b"]) == (1, 2)
    printed = capsys.readouterr().err
    assert "cell 3 of the notebook:" in printed
    assert "ZeroDivisionError" in printed
    assert "raise ValueError('x')" in printed


def test_what_is_the_notebooks_alone_is_left_out() -> None:
    cells = [
        "get_ipython().run_line_magic('matplotlib', 'inline')\n",
        "get_ipython().system('false')\n",
        "files = get_ipython().getoutput('ls')\n",
        "get_ipython().run_cell_magic('writefile', 'a.py', 'never = 1\\n')\n",
        "get_ipython().run_cell_magic('time', '', 'cell = 1\\n')\n",
        "get_ipython().run_line_magic('time', 'line = 1')\n",
        "get_ipython().set_next_input('x')\n",
        "display(files)\n",
    ]
    namespace: dict[str, Any] = {}
    replay(cells, {}, namespace)
    assert (namespace["files"], namespace["cell"], namespace["line"]) == ([], 1, 1)
    assert "never" not in namespace
