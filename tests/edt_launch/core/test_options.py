"""The table of options in the user guide is that of the declarations."""

from pathlib import Path

from edt_launch.core.command_line import Option, options
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.programs.kinds import kinds
from edt_launch.launcher.transports.choice import option_groups

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "launching.md"


def row(option: Option) -> str:
    names = [*option.names, *([option.negation] if option.field.default is True else [])]
    return f"| {', '.join(f'`{name}`' for name in names)} | {default(option)} | {option.help} |"


def default(option: Option) -> str:
    value = option.field.default
    if value is True:
        return f"`{option.name}`"
    if value is None or value is False:
        return ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def table() -> str:
    groups = (RunOptions, *option_groups(), *(kind.options for kind in kinds()))
    rows = [row(option) for group in groups for option in options(group)]
    return "\n".join(["| option | default | |", "|---|---|---|", *rows, ""])


def test_all_options_are_in_the_table() -> None:
    assert table() in PAGE.read_text()
