"""The command `edt`. A command's module is imported when it runs: `edt --help` must answer at once."""

import io
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer import Option
from typer.exceptions import TyperException

from edt_launch.cli.lazy import Commands, lazy_group
from edt_launch.core.system import standard_streams

CLI, TOOLS = "edt_launch.cli.commands", "edt_launch.tools"
COMMANDS: Commands = {
    "submit": (f"{CLI}.submit:submit", "Queue a job that runs COMMAND in a copy of this folder."),
    "torchrun": (
        f"{TOOLS}.torchrun_command:torchrun",
        "Run a program written for torchrun, on workers that may change.",
    ),
    "ps": (f"{CLI}.jobs:ps", "List jobs."),
    "top": (f"{CLI}.top:top", "Watch devices, owners and jobs."),
    "show": (f"{CLI}.jobs:show", "Show everything about a job."),
    "why": (f"{CLI}.jobs:why", "Explain why a job has its size, or waits."),
    "logs": (f"{CLI}.logs:logs", "Print what a job's workers print."),
    "results": (f"{CLI}.archives:results", "Fetch what a job has made, and its logs."),
    "checkpoints": (f"{CLI}.archives:checkpoints", "List a job's checkpoints, or fetch one."),
    "stop": (f"{CLI}.jobs:stop", "End jobs for good."),
    "pause": (f"{CLI}.jobs:pause", "Have jobs save their state and give up their devices."),
    "resume": (f"{CLI}.jobs:resume", "Let paused jobs go on."),
    "rm": (f"{CLI}.jobs:remove", "Delete jobs that have ended, with all that they have made."),
    "set": (f"{CLI}.jobs:change", "Change a job's size limits, priority, weight or name."),
    "project": (f"{CLI}.project:app", "Share experiments: projects and their members."),
    "experiment": (f"{CLI}.experiment:app", "Run training definitions, and compare the runs."),
    "search": (f"{CLI}.search:app", "Search for parameters; each trial is a job."),
    "data": (f"{CLI}.data:app", "Upload, list and delete data sets for jobs."),
    "hosts": (f"{CLI}.cluster:hosts", "List machines, and who has their devices."),
    "drain": (f"{CLI}.cluster:drain", "Move all workers off a host, and keep it free."),
    "ui": (f"{CLI}.ui:ui", "Open the service's pages in a browser."),
    "shares": (f"{CLI}.cluster:shares", "Show the owners' tree, or change a node of it."),
    "users": (f"{CLI}.accounts:users", "List users; add and remove them."),
    "tokens": (f"{CLI}.accounts:tokens", "List your tokens; make and revoke them."),
    "serve": ("edt_launch.service.app.command:serve", "Run the job service on this machine."),
    "up": (f"{CLI}.up:up", "Try everything: a service, two users, two jobs."),
    "discover": (f"{TOOLS}.discover:command", "Print an allocation file as a host-discovery script does."),
    "simulate": (f"{TOOLS}.simulate.command:simulate", "Replay a trace of jobs through the allocator."),
    "demo": (f"{TOOLS}.demo.command:demo", "Train a script while the number of its workers changes."),
    "verify": (
        f"{TOOLS}.verify.command:verify",
        "Say whether a script's bits depend on its number of workers.",
    ),
    "doctor": (f"{TOOLS}.doctor.command:doctor", "Check this machine, the environment and the service."),
    "agent": ("edt_launch.agent.main:main", ""),
}
"""Of each command: where it is, as module:attribute, and what `edt --help` says of it."""

#: Everything after a script's or command's name is its own.
SCRIPT_COMMAND = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "submit": {"allow_interspersed_args": False},
    "demo": SCRIPT_COMMAND,
    "torchrun": {**SCRIPT_COMMAND, "help_option_names": []},
    "verify": SCRIPT_COMMAND,
}

app = typer.Typer(
    cls=lazy_group(COMMANDS, SETTINGS, "pip install 'edt-hvd[service]'"),
    name="edt",
    help="Elastic distributed training: jobs that grow and shrink in flight, in a pool shared fairly.",
    epilog="The service is named by EDT_URL and EDT_TOKEN, ~/.config/edt/config.toml, or EDT_HOME (~/.edt).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from edt_launch import __version__

        print(f"edt {__version__}")
        raise typer.Exit


@app.callback()
def _edt(
    version: Annotated[
        bool,
        Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; every way that it can end is one of the documented exit codes."""
    standard_streams.ensure_open()
    words = sys.argv[1:]
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without a character shows another one
        if not all(map(str.isascii, words)):
            from edt_launch.cli.errors import check_arguments

            check_arguments(words)
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        from edt_launch.cli.errors import report

        code = report(error, as_json)
    except Exception as error:  # noqa: BLE001 - the last line of defence: nobody is to see a traceback
        from edt_launch.cli.errors import ended_by

        code = ended_by(error, as_json)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
