"""Lets the CUDA-built torchvision be imported beside a CPU-only torch.

The package index serves torchvision only as a CUDA build.  Its compiled operators do not load where torch
has no CUDA libraries, and `import torchvision` then stops with "operator torchvision::nms does not exist",
because torchvision's own Python code attaches a shape function to two operators that nobody has declared.
Declaring them (name and argument types, no code) is enough: datasets, transforms, models and everything else
that is written in Python then works.  The compiled operators themselves (`nms`, `roi_align`, JPEG decoding
into tensors) stay unavailable, and torchvision says so when one of them is called.

`torchvision_hook` calls `define_missing_operators()` before torchvision is loaded, in every program.  So does
`edt_hvd` when it is imported, for environments that it is in without having been installed.
"""

import importlib.util
import sys
from pathlib import Path

import torch

_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_library: torch.library.Library | None = None  # the declarations live as long as this object does


def define_missing_operators() -> bool:
    """Declare the operators that `import torchvision` asks for, where it would fail without them.

    Does nothing where torchvision is absent or already imported, where its compiled operators load, or where
    torch is built for a GPU.  Does not import torchvision.  May be called any number of times.

    Returns:
        Whether the declarations are in place because of this or an earlier call.
    """
    global _library
    if _library is not None:
        return True
    if torch.version.cuda is not None or torch.version.hip is not None or "torchvision" in sys.modules:
        return False
    operators = _compiled_operators()
    if operators is None or _loads(operators):
        return False
    _library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            _library.define(schema)  # type: ignore[no-untyped-call]
    return True


def _compiled_operators() -> Path | None:
    """The file with torchvision's compiled operators; None where there is no torchvision or it has none."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return next((folder / name for name in ("_C.so", "_C.pyd") if (folder / name).is_file()), None)


def _loads(library: Path) -> bool:
    """Whether a library of operators can be loaded; if so, it is, as `import torchvision` would do."""
    try:
        torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except OSError:
        return False
    return True
