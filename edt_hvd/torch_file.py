"""`torch.save` for files that may fail."""

import sys
from typing import Any

import torch


def save(tree: Any, file: Any, **options: Any) -> None:
    """Save a tree as `torch.save` does with these options, to a file that is open.

    Raises:
        OSError: the disk is full, for instance. torch puts "unexpected pos 3328 vs 3220" in the place of
            whatever the file's ``write`` has raised.
    """
    handled = sys.exc_info()[1]  # by the caller: that is the context of every error here, too
    try:
        torch.save(tree, file, **options)
    except RuntimeError as error:
        if error.__context__ is None or error.__context__ is handled:
            raise
        raise error.__context__ from None
