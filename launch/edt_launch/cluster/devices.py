"""What this machine can run workers on: its GPUs, or else its cores."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from edt_launch.cluster.allocation import DEVICE

NVIDIA_SMI = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")
NVIDIA_SMI_TIMEOUT = 20.0
"""Seconds; with many GPUs and no persistence daemon it takes a few."""


@dataclass(frozen=True)
class Machine:
    """What this machine has.

    Attributes:
        gpus: names of the GPUs that may be used, as for CUDA_VISIBLE_DEVICES.
        cores: processor cores that may be used.
    """

    gpus: tuple[str, ...]
    cores: int

    @property
    def workers(self) -> int:
        """How many workers it runs by default."""
        return len(self.gpus) or self.cores


def visible(installed: Sequence[str], variable: str | None) -> tuple[str, ...]:
    """The GPUs that may be used.

    Args:
        installed: indices of the GPUs there are.
        variable: value of CUDA_VISIBLE_DEVICES, None if unset. As for CUDA itself,
            an entry that names no GPU ends the list.
    """
    if variable is None or not installed:
        return tuple(installed)
    names: list[str] = []
    for entry in (entry.strip() for entry in variable.split(",")):
        is_name = entry.startswith(("GPU-", "MIG-")) and re.fullmatch(DEVICE, entry)
        if not (entry in installed or is_name) or entry in names:
            break
        names.append(entry)
    return tuple(names)


def this_machine() -> Machine:
    """Ask the driver's own tool and the operating system."""
    gpus = visible(_installed(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Machine(gpus, cores or 1)


def _installed() -> list[str]:
    try:
        result = subprocess.run(
            NVIDIA_SMI, capture_output=True, text=True, check=False, timeout=NVIDIA_SMI_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = [line.strip() for line in result.stdout.splitlines()]
    return [line for line in lines if line.isdecimal()] if result.returncode == 0 else []
