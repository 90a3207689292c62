"""Slurm: the hosts and GPUs of the job that this process runs in, from the variables that Slurm sets."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource, usable, without_devices
from edt_launch.core.errors import HostsError


@dataclass(frozen=True)
class Slurm(HostSource):
    """An allocation of Slurm's; it does not change."""

    name: ClassVar[str] = "slurm"
    found: tuple[HostSlots, ...]
    job: str = ""

    def __str__(self) -> str:
        return f"Slurm job {self.job}"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:
        """If this process was started inside `sbatch` or `salloc`.

        GPUs are numbered from 0 on each node, or as SLURM_STEP_GPUS or SLURM_JOB_GPUS say if there is but
        one; without GPUs, each task or core of a node is a slot.
        """
        variables = options.environment
        nodes = variables.get("SLURM_JOB_NODELIST")
        job = variables.get("SLURM_JOB_ID")
        if not job or not nodes:
            return None
        names = hosts_of(nodes)
        where = "SLURM_JOB_NODELIST"
        gpus = variables.get("SLURM_GPUS_ON_NODE", "").strip()
        if gpus.isdecimal() and int(gpus):
            listed = variables.get("SLURM_STEP_GPUS") or variables.get("SLURM_JOB_GPUS") or ""
            devices = tuple(map(str, range(int(gpus))))
            if len(names) == 1 and listed:
                devices = tuple(listed.split(","))
            if not all(device.isdecimal() for device in devices):
                raise HostsError("SLURM_JOB_GPUS", listed, "numbers with commas between")
            return cls(usable((HostSlots(name, len(devices), devices) for name in names), where), job)
        per_node = variables.get("SLURM_TASKS_PER_NODE") or variables.get("SLURM_JOB_CPUS_PER_NODE") or "1"
        counts = counts_of(per_node, len(names))
        found = (without_devices(name, count) for name, count in zip(names, counts, strict=True))
        return cls(usable(found, where), job)

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        return self.found


def hosts_of(text: str) -> tuple[str, ...]:
    """The names in a list of Slurm's: ``node[01-03,7],login`` has five, ``n[1-2]-x[1-2]`` four.

    Raises:
        HostsError: it is none.
    """
    from hostlist import BadHostlist, expand_hostlist

    expected = "names such as node[01-03]"
    try:
        names = expand_hostlist(text, allow_duplicates=True)
    except BadHostlist as error:
        raise HostsError("SLURM_JOB_NODELIST", text, f"{expected} ({error})") from None
    if "" in text.split(","):
        raise HostsError("SLURM_JOB_NODELIST", text, f"{expected}, none of them empty")
    return tuple(names)


def counts_of(text: str, nodes: int) -> tuple[int, ...]:
    """The numbers in a list of Slurm's: ``2(x3),1`` is 2, 2, 2, 1.

    Raises:
        HostsError: it is none, or has not as many numbers as there are nodes.
    """
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,5})(?:\(x(\d{1,5})\))?", part.strip())
        if found is None:
            raise HostsError("SLURM_TASKS_PER_NODE", text, "numbers such as 4(x2),1")
        counts += [int(found[1])] * int(found[2] or 1)
    if len(counts) != nodes:
        raise HostsError("SLURM_TASKS_PER_NODE", text, f"{nodes} numbers, one for each node")
    return tuple(counts)
