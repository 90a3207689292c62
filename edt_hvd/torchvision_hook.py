"""Lets programs import torchvision beside a CPU-only torch without importing `edt_hvd` before it.

Installed as the module `_edt_torchvision`, which `edt_torchvision.pth` has every interpreter import when it
starts. All it does then is to register a finder. Only when `torchvision` is imported is anything else loaded:
`torchvision_cpu`, which says what is declared and why, and torch.
"""

import sys

TYPE_CHECKING = False  # every interpreter runs this: nothing is imported that it does not need
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

NAME = "torchvision"
_DECLARATIONS = "edt_hvd.torchvision_cpu"


class Finder:
    """Finds torchvision as the other finders do, and has it prepared before it is loaded."""

    @classmethod
    def find_spec(
        cls, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """The module's spec; None for every other module."""
        if name != NAME:
            return None
        found = (one.find_spec(name, path, target) for one in sys.meta_path if one is not cls)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            create = spec.loader.create_module

            def create_module(spec: "ModuleSpec") -> "ModuleType | None":
                prepare()
                return create(spec)

            spec.loader.create_module = create_module  # type: ignore[method-assign]
        return spec


def prepare() -> None:
    """Declare what torchvision needs; does nothing where edt_hvd is not installed.

    Raises:
        ImportError: there is no torch.
    """
    declarations = sys.modules.get(_DECLARATIONS) or _load_alone()
    if declarations is not None:
        declarations.define_missing_operators()


def _load_alone() -> "ModuleType | None":
    """The module of the declarations without its package, which would import all of the library."""
    import importlib.util
    from pathlib import Path

    package = importlib.util.find_spec(_DECLARATIONS.partition(".")[0])
    if package is None or package.origin is None:
        return None
    file = Path(package.origin).with_name("torchvision_cpu.py")
    spec = importlib.util.spec_from_file_location("_edt_torchvision_cpu", file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[spec.name] = module  # the declarations live as long as it does
    return module


if Finder not in sys.meta_path:
    sys.meta_path.insert(0, Finder)
