"""A training script, or any other command: one process a slot, on a number of slots that may change."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import UsageError
from edt_launch.core.run_options import RunOptions
from edt_launch.core.scripts import script_problem
from edt_launch.launcher.plan import JobOutcome, stays_here
from edt_launch.launcher.program import Kind, LaunchedJob, Workers

NOT_ELASTIC = """\
no worker has come to an elastic function: a script for plain Horovod needs `import edt_hvd` and
`@edt_hvd.elastic` in place of `@hvd.elastic.run` (docs/how-to/horovod-port.md), or `edt-launch --horovodrun`
(docs/how-to/horovodrun.md), which runs it as it is"""
"""What to tell about a Horovod script that cannot run as it is."""


@dataclass(frozen=True)
class Script:
    """A script or a command, and the environment variables that its workers get besides ours."""

    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    output_option: str = "--output-dir"
    output_dir: Path | None = None

    @classmethod
    def of(cls, words: Sequence[str], options: RunOptions | None = None) -> Self:
        """The program of these words: the path of a script, or a command, with arguments.

        Args:
            words: of the command line.
            options: say which hosts it may run on; None: on this machine.

        Raises:
            UsageError: there is no such file or command, as far as can be seen from this machine.
        """
        first = words[0]
        problem = script_problem(words, Path())
        if problem is not None and options is not None and not stays_here(options, os.environ):
            problem = script_problem(words, Path(), None)
        if problem is not None:
            raise UsageError(f"{problem.text}; {problem.advice}")
        return cls([sys.executable, *words] if first.endswith(".py") else list(words))

    def options(self, options: RunOptions) -> RunOptions:
        """They are as the user has given them."""
        return options

    def bounds(self, limits: SizeLimits) -> SizeLimits:
        """Any number of workers will do."""
        return limits

    def slots_here(self, limits: SizeLimits) -> int:
        """One for each worker that it may have."""
        return limits.max_np

    def rank(self, options: RunOptions, environment: Mapping[str, str]) -> None:
        """None: it is started once."""

    def run(self, job: LaunchedJob) -> JobOutcome:
        """Run it."""
        from edt_launch.launcher.elastic import run

        return run(job, ScriptWorkers(self.command, self.variables))


class ScriptWorkers(Workers):
    """The workers of a script."""

    def advice(self, last_lines: Sequence[str]) -> str:
        """How to run a script for plain Horovod, if it looks like one in a world unknown to Horovod."""
        is_horovods = any("gloo" in line or "horovod" in line.lower() for line in last_lines)
        return NOT_ELASTIC if is_horovods else ""


class ScriptKind(Kind):
    """Scripts and commands."""

    name = "script"

    def read(self, program: list[str], options: RunOptions, own: Any) -> Script:
        """The program; nothing has to ask for it."""
        return Script.of(program, options)


KIND = ScriptKind()
