"""A host-discovery script that shows the accepted allocation, for whoever has use for it.

A few lines of POSIX shell and no other program, because plain ``horovodrun --host-discovery-script`` runs it
about once a second, and its PATH may lead to none.
"""

import shlex
from pathlib import Path

from edt_launch.core.atomic import write_atomically

_SCRIPT = """\
#!/bin/sh
# The hosts a job has at present, as host:slots, for horovodrun --host-discovery-script.
while IFS= read -r line || [ -n "$line" ]; do
  word=${{line%%[[:space:]]*}}
  case $word in
    [!A-Za-z0-9_]* | *[!A-Za-z0-9_.:-]* | *:*:* | :* | *: | *:0* | *:*[!0-9]*) ;;
    *:*) printf '%s\\n' "$word" ;;
  esac
done < {allocation}
"""


def script(allocation: Path) -> str:
    """The text of a script that prints the allocation file's `host:slots` lines, and nothing else.

    It fails, which changes nothing for horovodrun, while there is no such file.
    """
    return _SCRIPT.format(allocation=shlex.quote(str(allocation)))


def write(path: Path, allocation: Path) -> None:
    """Write the script for `allocation` (made absolute) to `path`, executable."""
    write_atomically(path, script(allocation.absolute()))
    path.chmod(0o755)
