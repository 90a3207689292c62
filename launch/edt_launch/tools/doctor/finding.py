"""What a check finds, and how it asks a machine.

Whatever may be missing or broken (torch, Horovod, MPI) is imported by a child process, which may fail or
crash without harm.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from edt_launch.tools.doctor.machine import TIMED_OUT, CommandOutput, Machine

Status = Literal["ok", "warn", "fail"]

SET_UP = "run 'make setup'"
BUSY = "run 'edt doctor' again when the machine and its disks are less busy"


@dataclass(frozen=True)
class Finding:
    """What one check found; `fix` says what to do, where something is to be done."""

    name: str
    status: Status
    finding: str
    fix: str | None = None


def probe(machine: Machine, code: str) -> tuple[dict[str, Any] | None, CommandOutput]:
    """Run `code` in a child interpreter; return the JSON object of its last line, None when it failed."""
    output = machine.run(machine.executable, "-c", code)
    try:
        found = json.loads(output.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return None, output
    return (found if output.code == 0 and isinstance(found, dict) else None), output


def import_failure(name: str, status: Status, output: CommandOutput) -> Finding:
    """What to report of a package whose probe failed or was too slow."""
    if output.code == TIMED_OUT:
        return Finding(name, status, f"not imported yet: {output.reason}", BUSY)
    return Finding(name, status, f"cannot be imported: {output.reason}", SET_UP)


def gpu_models(machine: Machine) -> list[str]:
    """The model of each GPU of the machine."""
    listing = machine.run("nvidia-smi", "-L")
    return re.findall(r"^GPU \d+: (.*?) \(", listing.stdout, re.MULTILINE) if listing.code == 0 else []
