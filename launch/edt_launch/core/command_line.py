"""Options declared once, as the fields of dataclasses: read from a command line, written to one, listed.

A field is annotated with `typer.Option`, which has its bounds and its help; `Variable` names the environment
variable by which workers find its value.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, fields
from enum import Enum
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

_T = TypeVar("_T")


@dataclass(frozen=True)
class NoOptions:
    """What has no options of its own."""


@dataclass(frozen=True)
class Variable:
    """The environment variable that hands an option on to the workers."""

    name: str


@dataclass(frozen=True)
class Option:
    """An option as its field declares it.

    Attributes:
        annotation: its type, with what typer has to know.
        names: under which it is given, such as "-H" and "--hosts".
        variable: by which workers find its value; None for none.
    """

    field: Field[Any]
    annotation: Any
    info: OptionInfo
    names: tuple[str, ...]
    help: str
    variable: str | None

    @property
    def name(self) -> str:
        """The longest of its names, such as "--max-np"."""
        return self.names[-1]

    @property
    def negation(self) -> str:
        """What says no to an option that is on by default."""
        return f"--no-{self.name.removeprefix('--')}"

    @property
    def parameter(self) -> inspect.Parameter:
        """What a command takes it as."""
        name, default = self.field.name, self.field.default
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(name, kind, default=default, annotation=self.annotation)

    def words(self, value: Any) -> list[str]:
        """What says `value` on a command line; nothing for the default."""
        if value == self.field.default:
            return []
        if isinstance(value, bool):
            return [self.name if value else self.negation]
        return [self.name, str(value.value if isinstance(value, Enum) else value)]


def options(group: type) -> Iterator[Option]:
    """The options that the fields of a dataclass declare; other fields are none."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        _, *extras = get_args(hints[field.name])
        info = next((extra for extra in extras if isinstance(extra, OptionInfo)), None)
        if info is None:
            continue
        declared = (word for word in (info.default, *(info.param_decls or ())) if isinstance(word, str))
        names = tuple(declared) or (f"--{field.name.replace('_', '-')}",)
        variable = next((extra.name for extra in extras if isinstance(extra, Variable)), None)
        yield Option(field, hints[field.name], info, names, info.help or "", variable)


def words(group: Any) -> list[str]:
    """The words of a command line that give the options of this dataclass, and of its `groups`."""
    own = [
        word for option in options(type(group)) for word in option.words(getattr(group, option.field.name))
    ]
    return [*own, *(word for each in getattr(group, "groups", ()) for word in words(each))]


def filled(group: type[_T], values: Mapping[str, Any]) -> _T:
    """A dataclass of options with those of these values that it declares."""
    return group(**{option.field.name: values[option.field.name] for option in options(group)})


def of(given: Iterable[object], group: type[_T]) -> _T:
    """The one of these dataclasses that is a `group`; one with its defaults if there is none."""
    return next((each for each in given if isinstance(each, group)), None) or group()


def named(group: Any) -> list[str]:
    """The options that are not what they are by default, by the first of their names."""
    given = (option for option in options(type(group)) if option.words(getattr(group, option.field.name)))
    return [option.names[0] for option in given]


def variables(group: Any) -> dict[str, str]:
    """The environment variables that hand the options of this dataclass on; none for what is None."""
    named = {option.variable: getattr(group, option.field.name) for option in options(type(group))}
    return {name: str(value) for name, value in named.items() if name is not None and value is not None}


def with_options(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a command take the options of these dataclasses.

    It is called with its own parameters, which are annotated as typer has it, and an instance of each.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(function).parameters.values()
        own = [parameter for parameter in parameters if get_origin(parameter.annotation) is Annotated]

        def command(**given: Any) -> None:
            read: list[object] = [filled(group, given) for group in groups]
            function(*(given[parameter.name] for parameter in own), *read)

        declared = [option.parameter for group in groups for option in options(group)]
        command.__doc__ = function.__doc__
        command.__annotations__ = {}
        command.__signature__ = inspect.Signature([*own, *declared])  # type: ignore[attr-defined]
        return command

    return decorate
