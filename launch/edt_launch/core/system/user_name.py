"""The name of whoever runs a process."""

import getpass
import os


def user_name() -> str:
    """The user's name; u and their number if the system has no name for it, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"u{os.getuid()}"
