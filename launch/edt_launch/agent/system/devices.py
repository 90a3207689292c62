"""Whether a host has the GPU that its line in an allocation says it has."""

import os
from pathlib import Path

GPUS = Path("/proc/driver/nvidia/gpus")
"""A folder with an entry for each GPU of the host; there is none without the driver."""


def count() -> int:
    """NVIDIA GPUs of this host."""
    try:
        return len(os.listdir(GPUS))
    except OSError:
        return 0


def problem(host: str, devices: str, gpus: int) -> str | None:
    """Why a worker of a host cannot have these devices, in words; None if it can, or nobody knows.

    Only numbers can be wrong, and only where there are `gpus`: without any, they are names of slots. CUDA
    hides a GPU that is not there, and the worker would train on the processor.
    """
    wrong = [name for name in devices.split(",") if name.isdecimal() and int(name) >= gpus > 0]
    if not wrong:
        return None
    has = "1 GPU, number 0" if gpus == 1 else f"{gpus} GPUs, numbers 0 to {gpus - 1}"
    return (
        f"{host} has no GPU {', '.join(wrong)}, only {has}: correct slots= or devices= of the host in the "
        f"host file, or add devices=none if jobs need no GPU"
    )
