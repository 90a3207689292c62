"""What programs may put in place of a file."""

import os
import socket
from pathlib import Path

KINDS = ("pipe", "link", "loop", "folder", "socket")


def put(kind: str, path: Path) -> None:
    """Put something there that is no file."""
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/etc/passwd")
        case "loop":
            path.symlink_to(path.name)
        case "folder":
            path.mkdir()
        case "socket":
            folder = os.open(path.parent, os.O_RDONLY)
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(f"/proc/self/fd/{folder}/{path.name}")  # its name must be short
            os.close(folder)
