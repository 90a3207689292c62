"""``edt serve``: the service in the foreground."""

import inspect
import sys
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from edt_launch.service.app.settings import Settings, SettingsError, load


def serve(**flags: Any) -> None:
    """Run the job service: queue, allocator, REST interface.

    Settings come from options, or else from the environment (EDT_PORT), or else from service.toml in the
    service's folder.
    """
    from edt_launch.service.app.opening import StartError
    from edt_launch.service.app.running import run

    try:
        run(load(**flags))
    except (SettingsError, StartError) as error:
        print(f"edt serve: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    default = field.get_default()
    shown = False if default is None else str(default)
    # Bounds and choices are the settings' business.
    kind = next((kind for kind in (bool, int, float) if field.annotation in (kind, kind | None)), str)
    flag = name.replace("_", "-")
    flags = f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}"
    option = typer.Option(flags, help=field.description, envvar=f"EDT_{name.upper()}", show_default=shown)
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def options() -> list[inspect.Parameter]:
    """An option for every setting."""
    return [_option(name, field) for name, field in Settings.model_fields.items()]


serve.__signature__ = inspect.Signature(options())  # type: ignore[attr-defined]
