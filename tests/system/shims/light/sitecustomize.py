"""Processes that have it in PYTHONPATH import what torch compiles with only when they compile.

Optimizers import torch._dynamo for two functions that do nothing where nobody compiles, and
`torch.use_deterministic_algorithms` imports torch._inductor for a setting of what is compiled. That is half
of the work of starting a worker. The settings of torch._dynamo are real ones.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

PACKAGES = ("torch._dynamo", "torch._inductor")
NAMES = (*PACKAGES, "torch._inductor.config")
ALONE = "torch._dynamo.config"
"""Needs nothing else of its package."""


def disable(function: Any, recursive: bool = True, **_: Any) -> Any:
    return function


class Light(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds these modules, and the real ones in their place as soon as anything else of them is asked for."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name in NAMES:
            spec = importlib.machinery.ModuleSpec(name, self, is_package=name in PACKAGES)
            if name in PACKAGES:
                own = name.removeprefix("torch.")
                spec.submodule_search_locations = [f"{folder}/{own}" for folder in path]
            return spec
        if name.rpartition(".")[0].startswith(PACKAGES) and name != ALONE:
            self._load()
        return None

    def exec_module(self, module: ModuleType) -> None:
        def of_the_real_one(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            self._load()
            return getattr(importlib.import_module(module.__name__), name)

        vars(module).update(disable=disable, graph_break=lambda msg="": None, __getattr__=of_the_real_one)

    def _load(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            light = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
            for name in light:
                parent, _, own = name.rpartition(".")
                vars(sys.modules.get(parent, sys)).pop(own, None)
            for name, module in light.items():
                real = importlib.import_module(name)
                if hasattr(module, "deterministic"):
                    real.deterministic = module.deterministic
                vars(module).update(vars(real))


sys.meta_path.insert(0, Light())
