"""Finding a program's imports without running it."""

import ast
import textwrap
from pathlib import Path

import pytest

from edt_hvd.warm.imports import Import, find, imports_of, sets_environment


def tree(text: str) -> ast.Module:
    return ast.parse(textwrap.dedent(text))


def test_what_runs_with_the_module() -> None:
    found = imports_of(
        tree("""
            import a, b.c as d
            from e.f import g, h
            from i import *
            if x:
                import j
            else:
                import k
            try:
                import l
            except ImportError:
                import m
            finally:
                import n
            with y:
                import o
            class C:
                import p
            """)
    )
    assert found[:4] == [Import("a"), Import("b.c"), Import("e.f", ("g", "h")), Import("i", ("*",))]
    assert [each.module for each in found[4:]] == list("jklmnop")


@pytest.mark.parametrize(
    "text, package, expected",
    [
        ("from . import a", "p.q", [Import("p.q", ("a",))]),
        ("from .r import a", "p.q", [Import("p.q.r", ("a",))]),
        ("from ..r import a", "p.q", [Import("p.r", ("a",))]),
        ("from ... import a", "p.q", []),
        ("from . import a", "", []),
    ],
)
def test_relative_imports(text: str, package: str, expected: list[Import]) -> None:
    assert imports_of(tree(text), package) == expected


@pytest.mark.parametrize(
    "text, line",
    [
        ("import os\nos.environ['A'] = '1'\nimport torch", 2),
        ("from os import environ\nenviron['A'] = '1'\nimport torch", 2),
        ("import os\nos.environ.setdefault('A', '1')\nfrom torch import nn", 2),
        ("import os\nif True:\n    os.putenv('A', '1')\nimport torch", 3),
        ("import os\ndel os.environ['A']\nimport torch", 2),
        ("import os\nos.environ['A'] = '1'\nfrom . import mine", 2),
        ("import os\nos.environ['A'] = '1'\nimport json", None),
        ("import os\nimport torch\nos.environ['A'] = '1'", None),
        ("import os\nprint(os.environ['A'])\nimport torch", None),
        ("import os\ndef main():\n    os.environ['A'] = '1'\nimport torch", None),
    ],
)
def test_changes_of_the_environment_before_imports(text: str, line: int | None) -> None:
    assert sets_environment(ast.parse(text)) == line


def test_own_files_are_followed_and_never_run(tmp_path: Path) -> None:
    files = {
        "train.py": "import models.big, torch, helper\nfrom models import small\nimport plain.inner\n1 / 0",
        "helper.py": "import numpy\nfrom helper import x\nimport os\nraise SystemExit",
        "models/__init__.py": "from . import common\n1 / 0",
        "models/common.py": "import scipy.stats\n1 / 0",
        "models/big.py": "from .common import y\n1 / 0",
        "models/small.py": "this is no Python",
        "plain/inner.py": "import rich",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = find(tmp_path / "train.py", "", [str(tmp_path)])
    assert {each.module for each in found.installed} == {"torch", "numpy", "os", "scipy.stats", "rich"}
    names = ["helper", "models", "models.big", "models.common", "models.small", "plain.inner"]
    assert sorted(found.own) == names
    assert found.own["models"] == tmp_path / "models" / "__init__.py"
    assert found.sets_environment is None


def test_mpi_is_never_imported_ahead(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from mpi4py import MPI")
    assert find(tmp_path / "train.py", "", [str(tmp_path)]).installed == ()


@pytest.mark.parametrize("where", ["train.py", "helper.py"])
def test_any_of_the_programs_files_may_mention_this_library(tmp_path: Path, where: str) -> None:
    for name, text in {"train.py": "import helper\n", "helper.py": "import torch\n"}.items():
        late = "def f():\n    import edt_hvd\n" if name == where else ""
        (tmp_path / name).write_text(text + late)
    assert find(tmp_path / "train.py", "", [str(tmp_path)]).mentions_us
    (tmp_path / where).write_text("import helper\n" if where == "train.py" else "import torch\n")
    assert not find(tmp_path / "train.py", "", [str(tmp_path)]).mentions_us
