"""Slurm: the hosts and GPUs of the job that this process runs in.

They come from the variables that Slurm sets. `SLURM_GPUS_ON_NODE` and `SLURM_JOB_GPUS` speak of the node of
this process alone. So the GPUs of several nodes come from `SLURM_GPUS_PER_NODE` (``--gpus-per-node``), from
`SLURM_GPUS_PER_TASK` (``--gpus-per-task``), or from ``scontrol show job --details``.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource, usable, without_devices
from edt_launch.cluster.slurm_job import TIME_LIMIT, SlurmJob
from edt_launch.core.errors import HostsError, SourceError

QUERY_INTERVAL = 2.0
"""Seconds between two questions to Slurm's controller."""


@dataclass
class Slurm(HostSource):
    """An allocation of Slurm's. It may lose nodes: one fails, or `scontrol update` takes it away."""

    name: ClassVar[str] = "slurm"
    transport: ClassVar[str] = "srun"
    may_change: ClassVar[bool] = True
    found: tuple[HostSlots, ...]
    job: str = ""
    _asked: float | None = field(default=None, repr=False)
    _left: frozenset[str] | None = field(default=None, repr=False)

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
        listed = variables.get("SLURM_STEP_GPUS") or variables.get("SLURM_JOB_GPUS") or ""
        counts = _gpus(names, job, variables)
        if any(counts):
            if len(names) == 1 and listed:
                host = _with_devices(names[0], tuple(listed.split(",")), listed)
                return cls(_reached(usable([host], where), variables), job)
            found = (
                HostSlots(n, c, tuple(map(str, range(c)))) for n, c in zip(names, counts, strict=True) if c
            )
            return cls(_reached(usable(found, where), variables), job)
        counts = tasks_of(variables, len(names))
        slots = (without_devices(name, count) for name, count in zip(names, counts, strict=True))
        return cls(_reached(usable(slots, where), variables), job)

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        now = time.monotonic()
        if self._asked is None:  # what the environment says is new
            self._asked = now
        elif (
            len(self.found) > 1
            and now - self._asked >= QUERY_INTERVAL
            and shutil.which("scontrol") is not None
        ):
            nodes = SlurmJob(self.job).fields().get("NodeList", "")
            self._asked, self._left = now, frozenset(hosts_of(nodes))
        left = tuple(host for host in self.found if self._left is None or host.host in self._left)
        if not left:
            raise SourceError(f"{self} has none of its nodes any more")
        return left


def _reached(hosts: Iterable[HostSlots], variables: Mapping[str, str]) -> tuple[HostSlots, ...]:
    """The agents of other nodes are started by `srun`; where there is none, as for other hosts."""
    if shutil.which("srun") is None:
        return tuple(hosts)
    here = variables.get("SLURMD_NODENAME")
    return tuple(host if host.host == here else replace(host, transport="srun") for host in hosts)


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


def _with_devices(name: str, devices: tuple[str, ...], listed: str) -> HostSlots:
    if not all(device.isdecimal() for device in devices):
        raise HostsError("SLURM_JOB_GPUS", listed, "numbers with commas between")
    return HostSlots(name, len(devices), devices)


def _gpus(names: Sequence[str], job: str, variables: Mapping[str, str]) -> tuple[int, ...]:
    """How many GPUs the job has on each of its nodes.

    Raises:
        HostsError: Slurm does not say.
    """
    here = variables.get("SLURM_GPUS_ON_NODE", "").strip()
    has_gpus = here.isdecimal() and int(here) > 0
    if len(names) == 1:
        return (int(here) if has_gpus else 0,)
    if per_node := variables.get("SLURM_GPUS_PER_NODE"):
        return (gpus_in("SLURM_GPUS_PER_NODE", per_node),) * len(names)
    if per_task := variables.get("SLURM_GPUS_PER_TASK"):
        each = gpus_in("SLURM_GPUS_PER_TASK", per_task)
        return tuple(tasks * each for tasks in tasks_of(variables, len(names)))
    if not has_gpus:
        return (0,) * len(names)
    counts = gpus_of_details(_details(job, here))
    missing = [name for name in names if name not in counts]
    if missing:
        raise HostsError(
            "scontrol show job --details", missing[0], "a line 'Nodes=... GRES=...' for each node"
        )
    return tuple(counts[name] for name in names)


def gpus_in(variable: str, text: str) -> int:
    """The number of GPUs in a request of Slurm's: ``4``, ``a100:4``, ``a100:2,v100:1``.

    Raises:
        HostsError: it is none.
    """
    parts = [re.fullmatch(r"(?:[^:,]+:){0,2}([0-9]{1,5})", part.strip()) for part in text.split(",")]
    if not all(parts):
        raise HostsError(variable, text, "a number of GPUs, such as 4 or a100:4")
    return sum(int(part[1]) for part in parts if part is not None)


def gpus_of_details(text: str) -> dict[str, int]:
    """How many GPUs the nodes of a job have, from what ``scontrol show job --details`` prints."""
    counts: dict[str, int] = {}
    for nodes, rest in re.findall(r"^\s+Nodes=(\S+) CPU_IDs=(.*)$", text, re.MULTILINE):
        gres = re.search(r"\bGRES=(\S+)", rest)
        numbers = re.findall(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)", gres[1] if gres is not None else "")
        for name in hosts_of(nodes):
            counts[name] = counts.get(name, 0) + sum(map(int, numbers))
    return counts


def _details(job: str, here: str) -> str:
    words = ["scontrol", "show", "job", "--details", job]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise HostsError(
            "SLURM_GPUS_ON_NODE",
            here,
            "to know the GPUs of the other nodes, too: ask Slurm for --gpus-per-node, or name hosts with -H "
            f"(scontrol show job --details {job}: {error})",
        ) from None
    return done.stdout


def tasks_of(variables: Mapping[str, str], nodes: int) -> tuple[int, ...]:
    """How many tasks the job has on each of its nodes; cores where Slurm counts no tasks of the whole job.

    In a step on fewer nodes, SLURM_TASKS_PER_NODE is of the step.

    Raises:
        HostsError: the variable makes no sense.
    """
    is_part = variables.get("SLURM_STEP_NUM_NODES", str(nodes)) != str(nodes)
    for variable in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE")[is_part:]:
        if text := variables.get(variable):
            return counts_of(text, nodes, variable)
    return (1,) * nodes


def counts_of(text: str, nodes: int, variable: str = "SLURM_TASKS_PER_NODE") -> tuple[int, ...]:
    """The numbers in a list of Slurm's: ``2(x3),1`` is 2, 2, 2, 1.

    Raises:
        HostsError: it is none, or has not as many numbers as there are nodes.
    """
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,5})(?:\(x(\d{1,5})\))?", part.strip())
        if found is None:
            raise HostsError(variable, text, "numbers such as 4(x2),1")
        counts += [int(found[1])] * int(found[2] or 1)
    if len(counts) != nodes:
        raise HostsError(variable, text, f"{nodes} numbers, one for each node")
    return tuple(counts)
