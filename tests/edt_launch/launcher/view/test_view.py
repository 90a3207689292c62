"""What a user sees, in a terminal and elsewhere."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from edt_launch.core.events import Standby, WarmServer
from edt_launch.launcher.view.output import Line
from edt_launch.launcher.view.status import Mark, Resize, Status
from edt_launch.launcher.view.view import (
    PLAIN_INTERVAL,
    LiveView,
    PlainView,
    Terminal,
    duration,
    make_view,
    panel,
    resizes_table,
    standby_lines,
    summary,
)

VALUES = {"total_steps": 400, "effective_batch_size": 256, "loss": 0.123456, "note": "hello " * 20}
STATUS = Status(
    size=4,
    generation=3,
    values=VALUES,
    history=tuple(Mark(100 + i, 100 + 2 * i, 4, 3) for i in range(11)),
    resizes=(Resize(2, 50, 2, 4, 0.234, "grown"), Resize(3, None, 4, 12, None, "a [bold]reason")),
    starting=frozenset({7}),
)
ESCAPE = "\x1b"


class Gone(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text):
        raise BrokenPipeError


def text_of(renderable, width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(renderable)
    return console.file.getvalue()


def terminal(width=80):
    console = Console(
        file=io.StringIO(), width=width, height=24, force_terminal=True, color_system="truecolor"
    )
    return console, console.file


@pytest.mark.parametrize("width", [50, 80, 200])
def test_the_panel_is_two_lines_of_any_width(width):
    lines = text_of(panel(110, STATUS), width).splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("4 w")


def test_the_panel_has_everything_at_80_columns():
    shown = text_of(panel(110, STATUS))
    for part in (
        "4 workers",
        "step 120/400",
        "2 steps/s",
        "512 samples/s",
        "ETA 2:20",
        "generation 3",
        "4 -> 12",
    ):
        assert part in shown
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in shown


@pytest.mark.parametrize(
    "status, part",
    [
        (Status(), "waiting"),
        (Status(starting=frozenset({1})), "starting 1 worker "),
        (Status(starting=frozenset({1, 2})), "starting 2 workers"),
        (Status(size=1, generation=1), "1 worker"),
        (replace(STATUS, values={}), "step 120,"),
        (replace(STATUS, exit_code=0), "finished"),
        (replace(STATUS, exit_code=1), "failed"),
        (replace(STATUS, exit_code=1, reason="SIGTERM"), "ended"),
    ],
)
def test_the_panel_at_other_times(status, part):
    assert part in text_of(panel(110, status))


def test_the_table_of_resizes():
    lines = text_of(resizes_table(STATUS)).splitlines()
    assert "Resizes" in lines[0]
    assert [part in lines[4] for part in ("50", "2", "4", "0.23", "grown")] == [True] * 5
    assert [part in lines[5] for part in ("4", "12", "-", "a [bold]reason")] == [True] * 4


def test_plain_lines_go_where_they_came_from_and_have_no_escape_codes():
    out, err = io.StringIO(), io.StringIO()
    view = PlainView(out, err)
    view.line(Line(3, "stdout", "hello"), "0")
    view.line(Line(3, "stderr", "oh"), "0")
    view.message("one\ntwo")
    view.refresh(110, STATUS)
    view.close(STATUS)
    assert out.getvalue() == "[0] hello\n"
    assert err.getvalue().startswith("[0] oh\nedt-launch: one\nedt-launch: two\n")
    assert "grown" in err.getvalue()
    assert ESCAPE not in out.getvalue() + err.getvalue()


def test_plain_progress_is_told_now_and_then():
    out, err = io.StringIO(), io.StringIO()
    view = PlainView(out, err)
    for now in range(int(2.5 * PLAIN_INTERVAL)):
        view.refresh(110 + now, replace(STATUS, history=(*STATUS.history, Mark(110 + now, 120 + now, 4, 3))))
    view.refresh(10_000, Status())
    assert len(err.getvalue().splitlines()) == 2
    assert summary(110, STATUS) == "4 workers, step 120/400, 2 steps/s, 512 samples/s, ETA 2:20"


def test_a_job_without_resizes_has_no_table():
    out, err = io.StringIO(), io.StringIO()
    PlainView(out, err).close(replace(STATUS, resizes=()))
    console, file = terminal()
    LiveView(console).close(replace(STATUS, resizes=()))
    assert out.getvalue() + err.getvalue() + file.getvalue() == ""


def test_lines_appear_above_the_live_view():
    console, file = terminal()
    view = LiveView(console)
    view.refresh(110, STATUS)
    view.line(Line(0, "stdout", "a [red]tag[/red] \x1b[31mred\x1b[0m :smile: " + "x" * 200), "0")
    view.line(Line(0, "stderr", "oh"), "0")
    view.message("a message")
    view.close(STATUS)
    shown = file.getvalue()
    assert "a [red]tag[/red]" in shown
    assert ":smile:" in shown
    assert "x" * 200 in shown
    assert shown.index("oh") < shown.index("a message") < shown.rindex("4 workers") < shown.index("Resizes")
    assert shown.endswith("\n")
    assert "\x1b[?25h" in shown  # the cursor is back


def test_the_live_view_is_redrawn_a_few_times_a_second():
    console, file = terminal()
    view = LiveView(console)
    for now in range(1000):
        view.refresh(110 + now / 1000, STATUS)
    assert file.getvalue().count("generation 3") <= 12


def test_errors_go_to_standard_error_if_that_is_elsewhere():
    console, file = terminal()
    err = io.StringIO()
    LiveView(console, err).line(Line(0, "stderr", "oh"), "0")
    assert (err.getvalue(), file.getvalue()) == ("[0] oh\n", "")


@pytest.mark.parametrize(
    "view", [PlainView(Gone(), Gone()), LiveView(Terminal(file=Gone(), force_terminal=True), Gone())]
)
def test_nothing_fails_when_nobody_is_there_to_see(view):
    for _ in range(2):
        view.refresh(110, STATUS)
        view.refresh(500, replace(STATUS, history=(*STATUS.history, Mark(111, 121, 4, 3))))
        view.line(Line(0, "stdout", "x"), "0")
        view.line(Line(0, "stderr", "x"), "0")
        view.message("x")
    view.close(STATUS)


def test_a_terminal_that_knows_few_characters_gets_replacements():
    raw = io.BytesIO()
    view = PlainView(io.TextIOWrapper(raw, "ascii"), io.StringIO())
    view.line(Line(0, "stdout", "zwölf"), "0")
    assert raw.getvalue() == b"[0] zw?lf\n"


@pytest.mark.parametrize("kind, expected", [("auto", PlainView), ("plain", PlainView), ("live", LiveView)])
def test_the_choice_of_the_view(kind, expected):
    assert isinstance(make_view(kind, io.StringIO(), io.StringIO()), expected)


@pytest.mark.parametrize(
    "seconds, text", [(0.4, "0:00"), (59.6, "1:00"), (3599, "59:59"), (36061, "10:01:01")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_what_newcomers_cost_is_said_below_the_table():
    costs = (Standby(0.4, 0.006, 13_000_000, worker=1), Standby(0.6, 0.008, 15_000_000, worker=2))
    status = replace(STATUS, standbys=costs, warm_servers={"h": WarmServer("h", 7, 2.24, ())})
    assert standby_lines(status) == [
        (
            "standby: 2 newcomers, on average 0.5 s at the rendezvous, 0.007 s of processor time, "
            "14 MB of own memory"
        ),
        "warm server on h: imported for 2.2 s",
    ]
    out, err = io.StringIO(), io.StringIO()
    PlainView(out, err).close(status)
    assert err.getvalue().splitlines()[-1] == "warm server on h: imported for 2.2 s"
    assert standby_lines(STATUS) == []
