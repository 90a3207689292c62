"""Options declared once: read from a command line, written to one, handed on."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from hypothesis import given
from hypothesis import strategies as st
from typer import Argument, Option, Typer
from typer.testing import CliRunner

from edt_launch.core.command_line import Variable, with_options, words
from edt_launch.core.run_options import RunOptions, ViewKind


@dataclass(frozen=True)
class Speed:
    fast_mode: Annotated[bool, Option(help="Be fast.")] = True
    seconds: Annotated[float | None, Option("-s", "--seconds", min=0), Variable("SECONDS")] = None


@dataclass(frozen=True)
class Color:
    dark: Annotated[bool, Option("--dark")] = False


def parsed(groups: tuple[type, ...], *given: str) -> list[Any]:
    """The arguments with which a command is called that takes these groups."""
    called: list[Any] = []
    app = Typer()

    @app.command()
    @with_options(*groups)
    def command(name: Annotated[str, Argument()], *filled: object) -> None:
        """Do something."""
        called.extend([name, *filled])

    result = CliRunner().invoke(app, [*given, "x"])
    assert result.exit_code == 0, result.output
    return called


def test_a_command_is_called_with_an_instance_of_each_group() -> None:
    found = parsed((Speed, Color), "--no-fast-mode", "-s", "2", "--dark")
    assert found == ["x", Speed(False, 2.0), Color(True)]
    assert parsed((Speed, Color)) == ["x", Speed(), Color()]


RUN_OPTIONS = st.builds(
    RunOptions,
    min_np=st.integers(1, 2**20),
    max_np=st.none() | st.integers(1, 2**20),
    allocation=st.none() | st.just(Path("/it's a/file")),
    start_timeout=st.floats(0, 1e9),
    warm_start=st.booleans(),
    max_log_size=st.none() | st.integers(1, 2**40),
    view=st.sampled_from(ViewKind),
    verbose=st.booleans(),
)


@given(RUN_OPTIONS)
def test_what_is_written_is_read_as_the_same(run_options: RunOptions) -> None:
    assert parsed((RunOptions,), *words(run_options)) == ["x", run_options]
    whole = replace(run_options, groups=(Color(True), Speed(False)))
    assert parsed((RunOptions, Color, Speed), *words(whole)) == ["x", run_options, Color(True), Speed(False)]
    assert (whole.of(Speed), run_options.of(Speed)) == (Speed(False), Speed())
