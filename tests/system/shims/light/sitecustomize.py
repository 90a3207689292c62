"""Processes that have it in PYTHONPATH import torch._dynamo only when they compile.

Optimizers import it for two functions that do nothing where nobody compiles. That is half of the work of
starting a worker.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

NAME = "torch._dynamo"


class Light(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module, and the real one in its place as soon as anything else of it is asked for."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name == NAME:
            spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
            spec.submodule_search_locations = [f"{folder}/_dynamo" for folder in path]
            return spec
        if name.startswith(f"{NAME}."):
            self._load()
        return None

    def exec_module(self, module: ModuleType) -> None:
        def disable(function: Any, recursive: bool = True, **_: Any) -> Any:
            return function

        def of_the_real_one(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(self._load(), name)

        vars(module).update(disable=disable, graph_break=lambda msg="": None, __getattr__=of_the_real_one)

    def _load(self) -> ModuleType:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            light = sys.modules.pop(NAME, None)
            vars(sys.modules["torch"]).pop("_dynamo", None)
            real = importlib.import_module(NAME)
            if light is not None:
                vars(light).update(vars(real))
        return sys.modules[NAME]


sys.meta_path.insert(0, Light())
