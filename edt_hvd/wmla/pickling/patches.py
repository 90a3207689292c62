"""Finds what a script has replaced in torch: executors have torch as it is installed."""

import sys
import types
import warnings
from collections.abc import Iterator

from edt_hvd.wmla.pickling.own_modules import is_own


def warn_of_patches() -> None:
    """Warn of functions of torch that are the script's, or of the user's modules."""
    found = sorted(patched())
    if found:
        warnings.warn(
            f"{', '.join(found)}: replaced in this process alone, the executors have torch's own; call your "
            "function where you need it, or replace torch's in on_train_begin of a callback",
            stacklevel=2,
        )


def patched() -> Iterator[str]:
    """The names of the functions of torch's modules and classes that are not torch's."""
    own = {name for name, module in sys.modules.copy().items() if name == "__main__" or is_own(module)}
    for name, module in sys.modules.copy().items():
        if name.partition(".")[0] == "torch" and isinstance(module, types.ModuleType):
            for key, value in list(vars(module).items()):
                is_class = issubclass(type(value), type)  # isinstance asks the object, which may warn
                if is_class and value.__module__ == name:
                    parts = ((f"{name}.{key}.{part}", item) for part, item in list(vars(value).items()))
                    yield from (at for at, item in parts if _module_of(item) in own)
                elif _module_of(value) in own:
                    yield f"{name}.{key}"


def _module_of(value: object) -> str | None:
    return value.__module__ if type(value) is types.FunctionType else None
