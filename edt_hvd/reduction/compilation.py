"""Compiled models: the code for a micro-batch must not depend on which micro-batches came before it."""

import importlib
from typing import Any

MAX_SHAPES = 64
"""Versions of a compiled function, at least, before torch gives up; its own limit of 8 counts on fewer."""


def compile_by_shape() -> None:
    """Have ``torch.compile`` compile for every shape by itself, from now on.

    By default a second shape, such as that of a short last micro-batch, makes torch compile once more for all
    shapes, with other rounding errors. A worker that meets the shapes in another order would use other code.
    For the same reason a function with too many shapes raises torch's ``FailOnRecompileLimitHit`` instead of
    being run without compilation.
    """
    # Making the optimizer has imported it; scripts that compile nothing need not wait for anything.
    config: Any = importlib.import_module("torch._dynamo.config")
    config.automatic_dynamic_shapes = False
    config.recompile_limit = max(config.recompile_limit, MAX_SHAPES)
    config.fail_on_recompile_limit_hit = True
