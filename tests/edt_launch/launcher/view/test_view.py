"""What a user sees, in a terminal and elsewhere."""

import io
from collections import deque
from dataclasses import replace

import pytest
from rich.console import Console

from edt_launch.core.history.job_history import JobHistory, Life, Mark, Resize
from edt_launch.launcher.view.output import Line
from edt_launch.launcher.view.view import (
    LiveView,
    PlainView,
    Terminal,
)

VALUES = {"total_steps": 400, "effective_batch_size": 256, "loss": 0.123456, "note": "hello " * 20}
JOB = JobHistory(
    size=4,
    generation=3,
    values=VALUES,
    marks=deque(Mark(100 + i, 100 + 2 * i, 4, 3) for i in range(11)),
    resizes=[Resize(2, 50, 2, 4, 0.234, "grown"), Resize(3, None, 4, 12, None, "a [bold]reason")],
    living={7: Life(7, 4, "h", None, 0.0)},
)
ESCAPE = "\x1b"


def terminal(width=80):
    console = Console(
        file=io.StringIO(), width=width, height=24, force_terminal=True, color_system="truecolor"
    )
    return console, console.file


def test_plain_lines_go_where_they_came_from_and_have_no_escape_codes():
    out, err = io.StringIO(), io.StringIO()
    view = PlainView(out, err)
    view.line(Line(3, "stdout", "hello"), "0")
    view.line(Line(3, "stderr", "oh"), "0")
    view.message("one\ntwo")
    view.refresh(110, JOB)
    view.close(JOB)
    assert out.getvalue() == "[0] hello\n"
    assert err.getvalue().startswith("[0] oh\nedt-launch: one\nedt-launch: two\n")
    assert "grown" in err.getvalue()
    assert ESCAPE not in out.getvalue() + err.getvalue()


def test_lines_appear_above_the_live_view():
    console, file = terminal()
    view = LiveView(console)
    view.refresh(110, JOB)
    view.line(Line(0, "stdout", "a [red]tag[/red] \x1b[31mred\x1b[0m :smile: " + "x" * 200), "0")
    view.line(Line(0, "stderr", "oh"), "0")
    view.message("a message")
    view.close(JOB)
    shown = file.getvalue()
    assert "a [red]tag[/red]" in shown
    assert ":smile:" in shown
    assert "x" * 200 in shown
    assert shown.index("oh") < shown.index("a message") < shown.rindex("4 workers") < shown.index("Resizes")
    assert shown.endswith("\n")
    assert "\x1b[?25h" in shown  # the cursor is back


class Gone(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize(
    "view", [PlainView(Gone(), Gone()), LiveView(Terminal(file=Gone(), force_terminal=True), Gone())]
)
def test_nothing_fails_when_nobody_is_there_to_see(view):
    for _ in range(2):
        view.refresh(110, JOB)
        view.refresh(500, replace(JOB, marks=deque([*JOB.marks, Mark(111, 121, 4, 3)])))
        view.line(Line(0, "stdout", "x"), "0")
        view.line(Line(0, "stderr", "x"), "0")
        view.message("x")
    view.close(JOB)
