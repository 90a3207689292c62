"""A group of commands that are imported when they run, and typer without what makes it slow."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

Commands = Mapping[str, tuple[str, str]]
"""Of each command: where it is, as module:attribute (a function, or a typer), and a line on what it does.

Commands that are not for users have an empty line, and are not listed.
"""


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for.

    Args:
        commands: where they are.
        settings: how the arguments of some are read, as typer's context settings.
        advice: what to do about a command that needs what is not installed.
    """

    def __init__(self, commands: Commands, settings: Mapping[str, Mapping[str, Any]], advice: str) -> None:
        self._commands, self._settings, self._advice = commands, settings, advice

    def __getitem__(self, name: str) -> Any:
        place, summary = self._commands[name]
        module, attribute = place.split(":")
        try:
            target = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            target = self._without(name, str(error.name))
        if not isinstance(target, typer.Typer):
            app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            app.command(
                name,
                cls=QuickCommand,
                short_help=summary,
                context_settings=dict(self._settings.get(name, {})),
            )(target)
            target = app
        command = typer.main.get_command(target)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def _without(self, name: str, module: str) -> Any:
        def missing() -> None:
            from edt_launch.cli.errors import MistakenError

            raise MistakenError(f"edt {name} needs {module}, which is not installed", self._advice)

        return missing


def lazy_group(
    commands: Commands, settings: Mapping[str, Mapping[str, Any]], advice: str
) -> type[TyperGroup]:
    """A class of group that has the commands, and lists them without importing them."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            found = LazyCommands(commands, settings, advice)
            self.commands = cast("MutableMapping[str, Any]", found)  # it is only read

        def list_commands(self, ctx: Any) -> list[str]:
            return [name for name, (_, summary) in commands.items() if summary]

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, commands[name][1]) for name in self.list_commands(ctx)])

        def get_params(self, ctx: Any) -> Any:
            return quickened(super().get_params(ctx))

    return LazyGroup


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
