"""Archives that the service sends, as files."""

import os
import sys
from pathlib import Path

from edt_launch.cli.errors import MistakenError
from edt_launch.cli.transport import Answer

STANDARD_OUTPUT = "-"


def save(answer: Answer, output: str) -> None:
    """Write an archive to a file, which is there when all of it has come, or to standard output for `-`.

    Raises:
        MistakenError: the file cannot be written.
        UnreachableError: the connection breaks on the way.
    """
    if output == STANDARD_OUTPUT:
        for block in answer.blocks():
            sys.stdout.buffer.write(block)
        return
    path = Path(output)
    is_special = path.exists() and not path.is_file()  # a device or a pipe, that nothing must replace
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with (path if is_special else beside).open("wb") as file:
            for block in answer.blocks():
                file.write(block)
        if not is_special:
            beside.replace(path)
    except OSError as error:
        raise MistakenError(f"{path}: {error.strerror}", "name another file with --output") from None
    finally:
        beside.unlink(missing_ok=True)
