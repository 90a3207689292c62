"""First in the path of workers that are not forked: one is prepared when its program has imported torch.

The program may set variables before that, which torch reads when it is imported: nothing is imported ahead.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

NAME = "torch"


class _Preparing(importlib.abc.MetaPathFinder):
    """Finds torch, and has the worker prepared when it is imported."""

    def __init__(self, prepare: str) -> None:
        self._prepare = prepare

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(NAME)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            prepare = importlib.import_module(self._prepare)
            prepare.install()
            prepare.begin()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _run_next() -> None:
    """Run the module of this name that would have been found without us."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = importlib.machinery.PathFinder.find_spec(__name__, others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "EDT_WORKER" in os.environ and (name := os.environ.pop("EDT_PREPARE", None)) is not None:
    sys.meta_path.insert(0, _Preparing(name))  # its own processes are not prepared: they find no EDT_PREPARE
_run_next()
