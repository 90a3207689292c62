"""Slurm's srun: the agent of each node is a step of the Slurm job that this process runs in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from edt_launch.core.environments import own
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.command import AGENT, CommandTransport


@dataclass(frozen=True)
class Srun(CommandTransport):
    """Agents are started without ssh. Each is a step of its own, so that the loss of a node ends no other."""

    name: ClassVar[str] = "srun"
    by_name_only: ClassVar[bool] = True
    job: str

    @classmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self | None:
        """Inside a job of Slurm, be it that of the service."""
        job = environment.get("SLURM_JOB_ID") or own().get("SLURM_JOB_ID")
        return None if not job else cls(job)

    def command(self, host: str, agent: Sequence[str] = AGENT) -> list[str]:
        """The step has all cores and GPUs that the Slurm job has on the node, as do other steps."""
        where = ["--jobid", self.job, "--nodelist", host, "--nodes", "1", "--ntasks", "1"]
        how = ["--overlap", "--cpu-bind", "none", "--mpi", "none", "--unbuffered", "--no-kill"]
        return ["srun", *where, *how, *agent]

    def explain(self, host: str, last_lines: Sequence[str]) -> str | None:
        """A node that has left the job is said to have."""
        text = "\n".join(last_lines)
        if "Invalid node name" in text or "not in allocated" in text:
            return f"{host} is not a node of Slurm job {self.job} any more"
        return None
