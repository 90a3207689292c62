"""The host-discovery script, through which horovodrun sees the allocation.

A few lines of POSIX shell, because horovodrun runs it about once a second. It serves plain
``horovodrun --host-discovery-script`` as well.
"""

import shlex
from pathlib import Path

from edt_launch.hosts.allocation import write_atomically

_HOST_SLOTS = r"[A-Za-z0-9_][A-Za-z0-9_.-]*:[1-9][0-9]*"


def script(allocation: Path) -> str:
    """The text of a script that prints the allocation file's `host:slots` lines, and nothing else.

    It fails, which changes nothing for horovodrun, while there is no such file.
    """
    return (
        "#!/bin/sh\n"
        "# The hosts a job has at present, as host:slots, for horovodrun --host-discovery-script.\n"
        rf"exec sed -n 's/^\({_HOST_SLOTS}\)\([[:space:]].*\)\{{0,1\}}$/\1/p' {shlex.quote(str(allocation))}"
        "\n"
    )


def write(path: Path, allocation: Path) -> None:
    """Write the script for `allocation` (made absolute) to `path`, executable."""
    write_atomically(path, script(allocation.absolute()))
    path.chmod(0o755)
