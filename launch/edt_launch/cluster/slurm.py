"""Slurm: the hosts and GPUs of the job that the service runs in, from the variables that Slurm sets."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

from hostlist import BadHostlist, expand_hostlist

from edt_launch.cluster.sources import DevicesError, HostDevices, Surroundings, slots


@dataclass(frozen=True)
class Slurm:
    """An allocation of Slurm's; it does not change."""

    name: ClassVar[str] = "slurm"
    found: tuple[HostDevices, ...]

    @classmethod
    def detect(cls, around: Surroundings) -> Self | None:
        """If the service was started by `sbatch` or `salloc`.

        GPUs are numbered from 0 on each node, or as SLURM_STEP_GPUS or SLURM_JOB_GPUS say if there is but
        one; without GPUs, each task or core of a node is a slot.
        """
        variables = around.environment
        nodes = variables.get("SLURM_JOB_NODELIST")
        if not variables.get("SLURM_JOB_ID") or not nodes:
            return None
        names = hosts_of(nodes)
        gpus = variables.get("SLURM_GPUS_ON_NODE", "").strip()
        if gpus.isdecimal() and int(gpus):
            listed = variables.get("SLURM_STEP_GPUS") or variables.get("SLURM_JOB_GPUS") or ""
            devices = (
                tuple(listed.split(",")) if len(names) == 1 and listed else tuple(map(str, range(int(gpus))))
            )
            if not all(device.isdecimal() for device in devices):
                raise DevicesError(f"SLURM_JOB_GPUS: {listed!r}: expected numbers with commas between")
            return cls(tuple(HostDevices(name, devices) for name in names))
        per_node = variables.get("SLURM_TASKS_PER_NODE") or variables.get("SLURM_JOB_CPUS_PER_NODE") or "1"
        counts = counts_of(per_node, len(names))
        return cls(tuple(HostDevices(name, slots(count)) for name, count in zip(names, counts, strict=True)))

    def hosts(self) -> tuple[HostDevices, ...]:
        """The nodes."""
        return self.found


def hosts_of(text: str) -> tuple[str, ...]:
    """The names in a list of Slurm's: ``node[01-03,7],login`` has five, ``n[1-2]-x[1-2]`` four.

    Raises:
        DevicesError: it is none.
    """
    try:
        names = expand_hostlist(text, allow_duplicates=True)
    except BadHostlist as error:
        raise DevicesError(
            f"SLURM_JOB_NODELIST: {text!r}: {error}; expected names such as node[01-03]"
        ) from None
    if "" in text.split(","):
        raise DevicesError(
            f"SLURM_JOB_NODELIST: {text!r}: a name is empty; expected names such as node[01-03]"
        )
    return tuple(names)


def counts_of(text: str, nodes: int) -> tuple[int, ...]:
    """The numbers in a list of Slurm's: ``2(x3),1`` is 2, 2, 2, 1.

    Raises:
        DevicesError: it is none, or has not as many numbers as there are nodes.
    """
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,5})(?:\(x(\d{1,5})\))?", part.strip())
        if found is None:
            raise DevicesError(f"SLURM_TASKS_PER_NODE: {text!r}: expected numbers such as 4(x2),1")
        counts += [int(found[1])] * int(found[2] or 1)
    if len(counts) != nodes:
        raise DevicesError(f"SLURM_TASKS_PER_NODE: {text!r}: expected {nodes} numbers, one for each node")
    return tuple(counts)
