"""``edt torchrun``: `edt-launch --program torchrun`."""

import typer

from edt_launch.launcher.command import launch_as


def torchrun(context: typer.Context) -> None:
    """Run a program written for torchrun: edt torchrun [OPTIONS OF TORCHRUN] PROGRAM [ARGS]."""
    launch_as("torchrun", context.args)
