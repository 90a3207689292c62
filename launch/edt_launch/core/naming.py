"""What a job is called that nobody has given a name."""

import re
from collections.abc import Sequence
from pathlib import PurePath


def script_name(command: Sequence[str]) -> str:
    """The name of a command's script, or of its program: letters, digits and ``_.-``, 40 at most."""
    word = next((word for word in command if word.endswith(".py")), command[0])
    return re.sub(r"[^\w.-]+", "-", PurePath(word).name.removesuffix(".py")).strip("-.")[:40] or "job"
