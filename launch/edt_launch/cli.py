"""The command `edt`. Each command's module is imported when it runs: `edt --help` must answer at once."""

from collections.abc import Callable
from typing import Annotated

import typer

app = typer.Typer(
    name="edt",
    help="Elastic distributed training: jobs that grow and shrink in flight.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

#: Everything after a script's name is the script's own.
SCRIPT_COMMAND = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Check interpreter, compilers, MPI, Horovod, torch and devices. Exit code 1 when a check fails."""
    from edt_launch.doctor import report

    raise typer.Exit(report(as_json=json))


@app.command(context_settings=SCRIPT_COMMAND, add_help_option=False)
def demo(context: typer.Context) -> None:
    """Train a script while the number of its workers changes; `edt demo --help` says more."""
    from edt_launch.demo import demo as command

    _run_inner(command, context)


@app.command(context_settings=SCRIPT_COMMAND, add_help_option=False)
def verify(context: typer.Context) -> None:
    """Say whether a script's bits depend on the number of workers; `edt verify --help` says more."""
    from edt_launch.verify.command import verify as command

    _run_inner(command, context)


@app.command(context_settings=SCRIPT_COMMAND, add_help_option=False)
def serve(context: typer.Context) -> None:
    """Run the job service; `edt serve --help` lists its settings."""
    from edt_launch.service.command import serve as command

    _run_inner(command, context)


def _run_inner(command: Callable[..., None], context: typer.Context) -> None:
    """Run a command whose options are declared in its own module, once."""
    inner = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    inner.command(context_settings=SCRIPT_COMMAND)(command)
    inner(args=context.args, prog_name=f"{context.command_path}")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
