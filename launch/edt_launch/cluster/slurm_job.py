"""The Slurm job that this process runs in: what Slurm says of it, and starting it again."""

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from edt_launch.core.errors import SourceError

TIME_LIMIT = 30.0
"""Seconds that a command of Slurm has for its answer."""

PREEMPTION = (signal.SIGTERM, signal.SIGUSR2)
"""Signals by which Slurm says that a job is to leave: SIGTERM by itself, SIGUSR2 by ``--signal=USR2@120``."""


@dataclass(frozen=True)
class SlurmJob:
    """A job of Slurm. `restarts`: how often it has been requeued."""

    id: str
    restarts: int = 0

    @classmethod
    def detect(cls, environment: Mapping[str, str]) -> Self | None:
        """The job of this process, if it was started by `sbatch`, `srun` or `salloc`."""
        job, restarts = environment.get("SLURM_JOB_ID"), environment.get("SLURM_RESTART_COUNT", "")
        return None if not job else cls(job, int(restarts) if restarts.isdecimal() else 0)

    def fields(self) -> dict[str, str]:
        """What ``scontrol show job`` says.

        Raises:
            SourceError: it does not answer.
        """
        return fields_of(ask("scontrol", "show", "job", "-o", self.id))

    def go_on(self, number: int) -> str:
        """The job has saved its state because of a signal: requeue it, unless its user wants its end.

        Returns:
            What to tell the user.
        """
        try:
            if number == signal.SIGTERM and not is_preempted(self.fields()):
                return f"the state is saved; 'scontrol requeue {self.id}' lets Slurm job {self.id} go on"
            ask("scontrol", "requeue", self.id)
        except SourceError as error:
            return f"the state is saved, but Slurm does not requeue the job: {error}"
        return f"the state is saved, and Slurm job {self.id} is requeued"


def ask(*words: str) -> str:
    """What a command of Slurm prints.

    Raises:
        SourceError: it does not succeed.
    """
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=True,
        )
    except OSError as error:
        raise SourceError(f"{words[0]}: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        raise SourceError(f"{' '.join(words)}: {error.stderr.strip()}") from None
    except subprocess.TimeoutExpired:
        raise SourceError(f"{' '.join(words)}: no answer within {TIME_LIMIT:g} s") from None
    return done.stdout


def fields_of(text: str) -> dict[str, str]:
    """The fields of a line of ``scontrol show -o``; of values with spaces the first word."""
    found = (word.partition("=") for word in text.split())
    return {name: value for name, equals, value in found if equals}


def is_preempted(fields: Mapping[str, str]) -> bool:
    """Whether a job that still runs is to make room for another one."""
    is_running = fields.get("JobState") in ("RUNNING", "SIGNALING")
    return is_running and fields.get("PreemptTime", "None") != "None"
