"""`torch.save` for files that may fail."""

from typing import Any

import torch


def save(tree: Any, file: Any) -> None:
    """Save a tree as `torch.save` does, to a file that is open.

    Raises:
        OSError: the disk is full, for instance. torch puts "unexpected pos 3328 vs 3220" in the place of
            whatever the file's ``write`` has raised.
    """
    try:
        torch.save(tree, file)
    except RuntimeError as error:
        if error.__context__ is None:
            raise
        raise error.__context__ from None
