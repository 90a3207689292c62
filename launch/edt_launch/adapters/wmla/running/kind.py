"""Programs for WMLA: the options of `edt-launch` that they have, and how they are run."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.command_line import words
from edt_launch.core.errors import UsageError
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.plan import JobOutcome
from edt_launch.launcher.program import Kind, LaunchedJob

EXECUTOR = "edt_hvd.wmla.executor"
"""The module that executors run; its first argument is the script."""


@dataclass(frozen=True)
class Options:
    """The options that they alone have."""

    wmla: Annotated[
        bool,
        Option(
            "--wmla",
            help="Run a WMLA program, from a copy of its folder: [OPTIONS] MODEL_DIR/MAIN.PY -- [ARGS].",
        ),
    ] = False
    framework: Annotated[
        str | None,
        Option(
            metavar="|".join(Framework),
            help="Framework of a WMLA program. Default: edtPyTorch, which is elastic.",
        ),
    ] = None
    data_dir: Annotated[
        Path | None, Option(help="DATA_DIR of a WMLA program. Default: a folder in its results.")
    ] = None
    result_dir: Annotated[Path | None, Option(help="RESULT_DIR of a WMLA program, its output directory.")] = (
        None
    )


@dataclass(frozen=True)
class WmlaProgram:
    """A program for WMLA: what the driver runs, or each worker, and the folders; None for the defaults.

    `code`, the folder that it runs in, is copied unless it was submitted. `script` is the one in it whose
    training executors will do; empty if they run something else.
    """

    command: Sequence[str]
    framework: Framework
    code: Path
    script: str = ""
    data_dir: Path | None = None
    output_dir: Path | None = None
    output_option: str = "--result-dir"

    def options(self, options: RunOptions) -> RunOptions:
        """They are as the user has given them."""
        return options

    def bounds(self, limits: SizeLimits) -> SizeLimits:
        """Those of an elastic program; any other has all of its workers from the beginning."""
        return limits if self.framework.is_elastic else SizeLimits(limits.max_np, limits.max_np)

    def slots_here(self, limits: SizeLimits) -> int:
        """One for each worker that it may have."""
        return limits.max_np

    def rank(self, options: RunOptions, environment: Mapping[str, str]) -> None:
        """None: it is started once."""

    def run(self, job: LaunchedJob) -> JobOutcome:
        """Run it: through its driver, or as one or more processes that are not resized."""
        from edt_launch.adapters.wmla.running.driven import Driven
        from edt_launch.adapters.wmla.running.preparing import prepare
        from edt_launch.launcher.elastic import Elastic, supervised

        with supervised(job) as supervision:
            paths = job.plan.paths
            prepared = prepare(paths, self.framework, self.code, self.data_dir, os.environ)
            if self.framework.is_elastic:
                script = str(prepared.layout.work / self.script)
                executor = (sys.executable, "-m", EXECUTOR, script) if self.script else ()
                return Driven(self.command, executor, prepared, job.plan, supervision).run()
            return Elastic(job.plan, prepared.workers(self.command), supervision).run()


class WmlaKind(Kind):
    """Programs for WMLA."""

    name = "wmla"
    options = Options
    frameworks = tuple(map(str, Framework))

    def read(self, program: list[str], options: RunOptions, own: Options) -> WmlaProgram | None:
        """The program: its script, as seen from the folder that it runs in, and the script's arguments."""
        if not own.wmla:
            if given := [word for word in words(own) if word.startswith("--")]:
                raise UsageError(f"{' and '.join(given)}: for WMLA programs alone; give --wmla, too")
            return None
        framework = _framework(own.framework)
        result_dir = own.result_dir or options.output_dir
        if options.output_dir not in (None, result_dir):
            raise UsageError(
                f"--result-dir {own.result_dir} and --output-dir {options.output_dir} are one folder: "
                "give --result-dir alone"
            )
        script = _script(program[0])
        if program[1:2] not in ([], ["--"]):
            raise UsageError(
                f"{program[1]!r} comes right after {program[0]}: "
                "put -- between a WMLA program and its arguments"
            )
        code = _code(script, result_dir)
        if result_dir is not None and result_dir.resolve() == code.resolve():
            raise UsageError(
                f"--result-dir {result_dir} is the folder of {script.name}, which is copied there: "
                "name another one, such as runs/first"
            )
        data = own.data_dir or _inherited_data_dir()
        if data is not None and not data.is_dir():
            source = "--data-dir" if own.data_dir else "DATA_DIR"
            raise UsageError(f"{source} {data} is not a folder: name the one with the program's data")
        inside = str(script.absolute().relative_to(code))
        command = [sys.executable, "-m", "edt_hvd.wmla.script", inside, *program[2:]]
        return WmlaProgram(command, framework, code, inside, data and data.absolute(), own.result_dir)

    def check(self, framework: str, command: Sequence[str], least: int, most: int) -> None:  # noqa: D102
        if not command[0].endswith(".py"):
            raise ValueError(f"command: {command[0]!r} is no Python script, which {framework} runs")
        if not Framework(framework).is_elastic and least != most:
            raise ValueError(f"min, {least}, and max, {most}: {framework} needs all of its devices at once")

    def command_line(self, options: RunOptions, framework: str | None, command: Sequence[str]) -> list[str]:
        """The options and the script, and after another -- its arguments."""
        own = Options(wmla=True, framework=framework)
        script, *arguments = command
        return [*words(options), *words(own), "--", script, "--", *arguments]


KIND = WmlaKind()


def _inherited_data_dir() -> Path | None:
    """What the environment says, as that of a job of the service does."""
    folder = os.environ.get("DATA_DIR")
    return Path(folder) if folder else None


def _framework(name: str | None) -> Framework:
    try:
        return Framework.ELASTIC if name is None else Framework(name)
    except ValueError:
        raise UsageError(
            f"--framework {name!r:.40}: only PyTorch programs run here; give one of {', '.join(Framework)}"
        ) from None


def _code(script: Path, result_dir: Path | None) -> Path:
    """The folder that a script runs in: of code that was submitted the present one, its model directory."""
    here, script = Path.cwd(), script.absolute()
    is_submitted = result_dir is not None and here.is_relative_to(RunDir(result_dir.resolve()).code.resolve())
    return here if is_submitted and script.is_relative_to(here) else script.parent


def _script(word: str) -> Path:
    script = Path(word)
    if script.is_dir():
        raise UsageError(f"{word} is a folder: give the script in it, such as {script / 'main.py'}")
    if not script.is_file():
        raise UsageError(
            f"{word} is not a file: give the path of a program's script, such as model_dir/main.py"
        )
    if script.suffix != ".py":
        raise UsageError(f"{word} is no Python script: --wmla runs scripts (.py)")
    return script
