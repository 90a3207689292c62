"""The file that hands a training to its executors.

By cloudpickle, so that functions and classes of the script travel by value: executors do not run the script.
Model, optimizer and functions are one pickle, since they refer to each other, with what modules of the script
have of them. What these import is looked for where the driver would look for it; see `modules`.
"""

import contextlib
import os
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle

from edt_hvd.wmla.channel import Address
from edt_hvd.wmla.handing import installed, modules
from edt_hvd.wmla.handing.following import Following
from edt_hvd.wmla.handing.generators import Generators
from edt_hvd.wmla.handing.pickling import Place, loads
from edt_hvd.wmla.handing.surroundings import Surroundings
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.schedule import Schedule


@dataclass(frozen=True)
class Payload:
    """All that an executor needs.

    Attributes:
        program: what is trained.
        schedule: how.
        results: where the results go.
        generators: what random numbers `datasets_function` finds, so that executors split data alike.
    """

    program: Program
    schedule: Schedule
    results: Address
    generators: Generators = field(default_factory=Generators.now)


def write(path: Path, payload: Payload) -> None:
    """Write the file, readable by its owner alone; beside, then renamed.

    Raises:
        TypeError: something of the program cannot be sent to other processes.
    """
    watch = modules.watch() or modules.Watch(os.curdir)
    handed = watch.hand_out(payload.program.parts())
    given = watch.given()
    content = cloudpickle.dumps(
        {
            "argv": sys.argv,
            "path": _search_path(),
            "surroundings": Surroundings.now(),
            "modules": (watch.folder, given),
            "installed": installed.settings(["__main__", *given]),
            "payload": _pickled(payload, watch, handed),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def read(path: Path) -> Payload:
    """Read the file, once this process is as the driver was and finds the modules that the file refers to."""
    content = pickle.loads(path.read_bytes())
    sys.argv[:] = content["argv"]
    sys.path[:] = [*content["path"], *(entry for entry in sys.path if entry not in content["path"])]
    content["surroundings"].adopt()
    following = Following(*content["modules"])
    following.install()
    for setting in content["installed"]:
        setting.adopt()
    payload, handed = loads(content["payload"])
    following.hand_out(handed)
    content["surroundings"].enter()
    assert isinstance(payload, Payload)
    return payload


def _search_path() -> list[str]:
    """The driver's, with what depends on the working directory spelled out."""
    return [os.path.abspath(entry) for entry in sys.path]


def _pickled(payload: Payload, watch: modules.Watch, handed: Mapping[Place, Any]) -> bytes:
    with contextlib.suppress(Exception):  # objects raise what they like when they are pickled
        return watch.dumps((payload, handed))
    errors = {place: _error(value, watch) for place, value in handed.items()}
    for (module, names), error in errors.items():
        if error is not None:
            modules.warn(module, names, error)
    try:
        sent = {place: value for place, value in handed.items() if errors[place] is None}
        return watch.dumps((payload, sent))
    except Exception as error:
        parts = vars(payload.program)
        culprit = next((n for n, part in parts.items() if _error(part, watch)), "the program")
        raise TypeError(
            f"{culprit} cannot be sent to the executors: {error}; leave out what only this process can "
            "use, such as open files, locks and connections, or make it where it is used"
        ) from error


def _error(value: Any, watch: modules.Watch) -> Exception | None:
    """Why an object cannot be pickled by itself."""
    try:
        watch.dumps(value)
    except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
        return error
    return None
