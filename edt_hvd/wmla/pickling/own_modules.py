"""Which modules are the user's."""

import os
import sysconfig
import types
from typing import Any

import edt_hvd

_PACKAGES = tuple(
    os.path.join(folder, "")
    for folder in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *edt_hvd.__path__)
)


def is_own(module: Any) -> bool:
    """Whether a module is the user's: Python source that is not among installed packages."""
    if not issubclass(type(module), types.ModuleType):  # isinstance asks the object, which may import more
        return False
    file = vars(module).get("__file__")
    if not isinstance(file, str) or not file.endswith(".py"):
        return False
    is_installed = f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
    return not is_installed and not file.startswith(_PACKAGES)
