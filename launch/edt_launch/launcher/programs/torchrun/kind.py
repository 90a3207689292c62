"""Programs for torchrun: `edt torchrun`, `edt-launch --program torchrun`, and torchrun's own commands."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edt_launch.cluster.follower import SizeLimits
from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.network import HostChecker
from edt_launch.cluster.ranks import LateRanks, Rank, for_file_name, name_of_host
from edt_launch.core.command_line import words
from edt_launch.core.errors import UsageError
from edt_launch.core.job_sizes import Sizes
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.plan import JobOutcome, named_sources
from edt_launch.launcher.program import Kind, LaunchedJob
from edt_launch.launcher.programs.torchrun.advice import advice, source_of
from edt_launch.launcher.programs.torchrun.arguments import Arguments
from edt_launch.launcher.programs.torchrun.command_line import parse

MODULES = {
    "torch.distributed.run": False,
    "torch.distributed.launch": True,
    "torchelastic.distributed.run": False,
    "torchelastic.distributed.launch": False,
}
"""Modules that are torchrun, and whether they pass the local rank on as an argument."""

LOOPBACKS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class TorchrunProgram:
    """A program for torchrun."""

    arguments: Arguments
    output_option: str = "--output-dir"
    output_dir: Path | None = None

    def options(self, options: RunOptions) -> RunOptions:
        """With the sizes that --nnodes and --nproc-per-node allow; narrower bounds of the user stay."""
        nproc = self.arguments.nproc
        low, high = self.arguments.min_nodes * nproc, self.arguments.max_nodes * nproc
        most = high if options.max_np is None else min(options.max_np, high) // nproc * nproc
        least = max(low, -(-options.min_np // nproc) * nproc)
        if least > most:
            raise UsageError(
                f"--nnodes {self.arguments.min_nodes}:{self.arguments.max_nodes} of {nproc} workers each "
                f"leaves no size from --min-np {options.min_np} to --max-np {options.max_np}"
            )
        return replace(options, min_np=least, max_np=most)

    def bounds(self, limits: SizeLimits) -> SizeLimits:
        """Those of the options."""
        return limits

    def slots_here(self, limits: SizeLimits) -> int:
        """This machine is one node, as it is for torchrun."""
        return self.arguments.nproc

    def rank(self, options: RunOptions, environment: Mapping[str, str]) -> Rank | None:
        """By --node-rank, else by whether this is the machine at which all nodes meet."""
        asked = self.arguments
        low, high, number, meeting = asked.min_nodes, asked.max_nodes, asked.node_rank, asked.meeting
        host = name_of_host(environment)
        is_named = options.allocation is not None or named_sources(HostOptions(environment, options.groups))
        if high == 1 or is_named:
            return None
        if low < high and number is None and has_nodes_of_slurm(environment):
            return None
        hosts = HostChecker()
        is_here = meeting is None or meeting.host in LOOPBACKS or not hosts.is_remote(meeting.host)
        if number is None and meeting is not None:
            if problem := None if meeting.host in LOOPBACKS else hosts(meeting.host):
                if low < high:  # needed by torchrun alone: this machine is one node
                    return None
                raise UsageError(f"{problem}, where the {high} nodes of --nnodes are to meet")
            number = int(not is_here)
        if number is None:
            return None
        if number >= high:
            raise UsageError(f"--node-rank {number}: --nnodes {low}:{high} has 0 to {high - 1}")
        if asked.node_rank and is_here:
            host = f"{host}-{number}"  # another node on the machine of the first one
        return Rank(
            number,
            low,
            for_file_name(f"torchrun-{asked.run_id}-{meeting or ''}"),
            host,
            asked.nproc,
            late=LateRanks(high, asked.last_call),
            is_elected=asked.node_rank is None and number == 0,
        )

    def run(self, job: LaunchedJob) -> JobOutcome:
        """Run it."""
        from edt_launch.launcher.elastic import run
        from edt_launch.launcher.programs.torchrun.workers import TorchrunWorkers

        is_resized = self.arguments.min_nodes < self.arguments.max_nodes
        told = advice(source_of(self.arguments.command)) if is_resized else ()
        for note in (*self.arguments.notes, *told):
            job.view.message(note)
        logs = self.arguments.log_dir or job.plan.paths.log / "torchrun"
        make_folder(logs)
        workers = TorchrunWorkers(
            self.arguments.command,
            arguments=self.arguments,
            end_grace=self.arguments.shutdown_timeout,
            logs=logs.absolute(),
            complain=job.view.message,
        )
        return run(job, workers)


def make_folder(logs: Path) -> None:
    """Make the folder of the logs, unless there are to be none.

    Raises:
        UsageError: it cannot be made.
    """
    if str(logs) == os.devnull:
        return
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--log-dir {logs} cannot be made: {error.strerror}; name another folder, or {os.devnull}"
        ) from None


def has_nodes_of_slurm(environment: Mapping[str, str]) -> bool:
    """Whether this is the script of `sbatch`, or a shell of `salloc`: started once, for all nodes."""
    return "SLURM_JOB_NODELIST" in environment and "SLURM_STEP_NUM_TASKS" not in environment


class TorchrunKind(Kind):
    """Programs for torchrun."""

    name = "torchrun"
    frameworks = ("torchrun",)

    def read(self, program: list[str], options: RunOptions, own: Any) -> TorchrunProgram | None:
        """The program of a command line that was parsed, or that begins with torchrun's own command."""
        if isinstance(own, Arguments):
            return TorchrunProgram(_checked(own))
        found = torchruns(program)
        if found is None:
            return None
        rest, is_legacy = found
        own_options, arguments = parse(rest, is_legacy=is_legacy)
        if given := [word for word in words(own_options) if word.startswith("--")]:
            raise UsageError(f"{' and '.join(given)} come before torchrun, or after `edt torchrun`")
        return TorchrunProgram(_checked(arguments))

    def parse(self, words: Sequence[str]) -> tuple[RunOptions, Arguments, list[str]]:  # noqa: D102
        options, arguments = parse(words)
        return options, arguments, list(arguments.command[2:] or arguments.command)

    def sizes(self, framework: str | None, command: Sequence[str], wanted: Sizes) -> Sizes | None:
        """Multiples of --nproc-per-node within --nnodes, and within what the user wants."""
        found = torchruns(command)
        if found is None and framework is None:
            return None
        program = TorchrunProgram(_arguments(command))
        try:
            options = program.options(RunOptions(min_np=wanted.min, max_np=wanted.max))
        except UsageError as error:
            raise ValueError(f"min and max: {error}") from None
        assert options.max_np is not None
        nproc = program.arguments.nproc
        fitting = range(options.min_np, options.max_np + 1, nproc)
        allowed = tuple(size for size in fitting if wanted.allowed is None or size in wanted.allowed)
        if not allowed:
            raise ValueError(f"allowed: none of them is a multiple of {nproc}, the workers of a node")
        is_any = nproc == 1 and wanted.allowed is None
        return Sizes(options.min_np, options.max_np, None if is_any else allowed)

    def advise(self, source: str) -> Sequence[str]:
        """What resizes would do to its trainer or its sampler."""
        return advice(source)

    def check(self, framework: str, command: Sequence[str], least: int, most: int) -> None:
        """See whether the options of a job's command make sense."""
        _arguments(command)

    def command_line(self, options: RunOptions, framework: str | None, command: Sequence[str]) -> list[str]:
        """The options, and torchrun's among the job's command."""
        found = torchruns(command)
        rest = list(command) if found is None else found[0]
        asked = options.grace != RunOptions.grace
        grace = ["--shutdown-timeout", f"{options.grace:.0f}"] if asked else []  # its `--grace` is another
        ours = replace(options, max_restarts=None, grace=RunOptions.grace)
        return ["--program", self.name, *words(ours), *grace, *rest]


def _arguments(command: Sequence[str]) -> Arguments:
    """What the command of a job asks of torchrun, with or without its name.

    Raises:
        ValueError: it makes no sense.
    """
    rest, is_legacy = torchruns(command) or (list(command), False)
    try:
        return parse(rest, {}, is_legacy=is_legacy)[1]
    except UsageError as error:
        raise ValueError(f"command: {error}") from None


def torchruns(program: Sequence[str]) -> tuple[list[str], bool] | None:
    """The words after a command that is torchrun, and whether it passes local ranks on; None for others."""
    first, *rest = program
    if first == "torchrun":
        return rest, False
    is_python = re.fullmatch(r"python(3(\.\d+)?)?", Path(first).name) is not None
    if is_python and rest[:1] == ["-u"]:
        rest = rest[1:]
    if is_python and len(rest) > 1 and rest[0] == "-m" and rest[1] in MODULES:
        return rest[2:], MODULES[rest[1]]
    return None


def _checked(arguments: Arguments) -> Arguments:
    """Raises UsageError: there is no such script or command."""
    first, *rest = arguments.command
    if shutil.which(first) is None:
        raise UsageError(f"{first}: command not found; give a script, or a command that is in PATH")
    script = next((word for word in rest if word != "-u"), "")
    if first == sys.executable and script != "-m" and not Path(script).is_file():
        raise UsageError(f"{script} is not a file: give the path of a training script, or a module after -m")
    return arguments


KIND = TorchrunKind()
