"""Two environments: that of EDT's own processes, and that of a job's program, which may break any Python.

The service hands a job's variables to `edt-launch` in a file. So its PYTHONPATH, PYTHONHOME, LD_LIBRARY_PATH
and the like are there for the program, and change nothing in `edt-launch` and its agents. What a user types
in a shell is different: there both environments are one, and only PYTHONPATH is put in its place.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

HANDED_OVER = "EDT_JOB_ENVIRONMENT"
"""The variable with the descriptor of the file that has a job's environment."""

_started_with: dict[str, str] = {}


def own() -> Mapping[str, str]:
    """The environment for other processes of EDT: the one that this process was started with."""
    return _started_with or os.environ


@contextmanager
def handed_over(environment: Mapping[str, str]) -> Iterator[int]:
    """The descriptor of a file without a name that has a job's environment."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(dict(environment)).encode())
        file.seek(0)
        yield file.fileno()


def adopt() -> None:
    """Take over the environment that was handed over: from then on it is `os.environ`."""
    if (descriptor := os.environ.pop(HANDED_OVER, None)) is None:
        return
    _started_with.update(os.environ)
    with open(int(descriptor), "rb") as file:
        environment = json.load(file)
    os.environ.clear()
    os.environ.update(environment)


def search_path(inherited: Mapping[str, str], given: Mapping[str, str]) -> str:
    """PATH of a job with these variables: its own one, the folder of this Python, and the inherited one."""
    here = os.path.dirname(sys.executable)
    return os.pathsep.join(filter(None, [given.get("PATH"), here, inherited.get("PATH", os.defpath)]))


def search_pythonpath_last() -> None:
    """Look for modules among installed packages first.

    A `statistics.py` of the program's must not replace the one that our own modules import.
    """
    if (value := os.environ.get("PYTHONPATH")) is None:
        return
    try:
        named = {os.path.abspath(entry) for entry in value.split(os.pathsep)}
    except FileNotFoundError:  # the current folder was deleted: nothing is found in it
        return
    sys.path.sort(key=named.__contains__)
