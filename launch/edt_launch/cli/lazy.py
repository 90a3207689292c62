"""A group of commands that are imported when they run, and typer without what makes it slow."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

Commands = Mapping[str, tuple[str, str]]
"""Where each command is, as module:attribute (a function, or a typer), and what it does, if it is listed."""


def lazy_group(
    commands: Commands, settings: Mapping[str, Mapping[str, Any]], advice: str
) -> type[TyperGroup]:
    """A class of group that has the commands, and lists them without importing them.

    `settings` are typer's context settings of some; `advice` is what to do where something is not installed.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = dict.fromkeys(commands)  # type: ignore[assignment] # for suggestions

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in commands:
                return None
            return _imported(cmd_name, commands[cmd_name], settings.get(cmd_name, {}), advice)

        def list_commands(self, ctx: Any) -> list[str]:
            return [name for name, (_, summary) in commands.items() if summary]

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, commands[name][1]) for name in self.list_commands(ctx)])

        def get_params(self, ctx: Any) -> Any:
            return quickened(super().get_params(ctx))

    return LazyGroup


def _imported(name: str, command: tuple[str, str], settings: Mapping[str, Any], advice: str) -> Any:
    module, attribute = command[0].split(":")
    try:
        target = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        target = _missing(f"edt {name} needs {error.name}, which is not installed", advice)
    if not isinstance(target, typer.Typer):
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command(name, cls=QuickCommand, short_help=command[1], context_settings=dict(settings))(target)
        target = app
    found = typer.main.get_command(target)
    found.name = name
    return found


def _missing(text: str, advice: str) -> Any:
    def missing() -> None:
        from edt_launch.cli.errors import MistakenError

        raise MistakenError(text, advice)

    return missing


class QuickCommand(TyperCommand):
    """A command whose words are taken as they are."""

    def get_params(self, ctx: Any) -> Any:
        """Its parameters, and the option for help."""
        return quickened(super().get_params(ctx))


def quickened(parameters: Sequence[Any]) -> Sequence[Any]:
    """Take words as they are; for the rest, typer asks pydantic, whose import takes a tenth of a second."""
    for parameter in parameters:
        if hasattr(parameter, "get_runtime_param") and "get_runtime_param" not in vars(parameter):
            words = _Words(parameter, parameter.get_runtime_param)
            parameter.get_runtime_param = lambda words=words: words
    return parameters


class _Words:
    """What typer converts a parameter's value with: not at all, if it is text that is to be text."""

    def __init__(self, parameter: Any, converter: Any) -> None:
        self._converter = converter
        self._is_text = parameter.type_descriptor.annotation in (str, list[str])

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._is_text:
            return value
        return self._converter().coerce(value, param=param, ctx=ctx)
