"""The current directory, which may have been deleted."""

import os

DELETED = "the current directory was deleted"
ADVICE = "change to another one, as with cd"


def is_deleted() -> bool:
    """Whether the current directory is not there any more."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
