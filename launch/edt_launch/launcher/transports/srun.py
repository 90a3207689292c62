"""Slurm's srun: the agent of each node is a step of the Slurm job that this process runs in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from edt_launch.cluster.slurm_pilots import NAME, TRANSPORT
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system.environments import own
from edt_launch.launcher.transports.command import AGENT, CommandTransport

STEP = (
    *("--nodes", "1", "--ntasks", "1", "--overlap", "--cpu-bind", "none", "--mpi", "none"),
    *("--unbuffered", "--no-kill"),
)
"""The step shares all cores and GPUs that the Slurm job has on its node with others of the job."""

FIND = f"""\
job=$(squeue --me --noheader --states=RUNNING --nodelist="$1" --format='%i %j' |
  awk '$2 ~ /^{NAME}/ {{ print $1; exit }}')
[ -n "$job" ] || {{ echo "no pilot runs on $1" >&2; exit 1; }}
node=$1
shift
exec srun --jobid "$job" --nodelist "$node" "$@"
"""
"""Runs a step of the pilot on a node."""


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
        """A step of the Slurm job, on that node."""
        return ["srun", "--jobid", self.job, "--nodelist", host, *STEP, *agent]

    def explain(self, host: str, last_lines: Sequence[str]) -> str | None:
        """A node that has left the job is said to have."""
        text = "\n".join(last_lines)
        if "Invalid node name" in text or "not in allocated" in text:
            return f"{host} is not a node of Slurm job {self.job} any more"
        return None


class SlurmPilot(CommandTransport):
    """Agents are steps of the pilots that `cluster.slurm_pilots` has submitted."""

    name: ClassVar[str] = TRANSPORT
    by_name_only: ClassVar[bool] = True

    @classmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self:
        """Wherever the commands of Slurm are."""
        return cls()

    def command(self, host: str, agent: Sequence[str] = AGENT) -> list[str]:
        """A step of the pilot on that node."""
        return ["sh", "-c", FIND, "sh", host, *STEP, *agent]
