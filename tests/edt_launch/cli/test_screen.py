import time

import pytest

from edt_launch.cli.screen import Column, columns, has_colours, moment, table


class Stream:
    """A stream that is a terminal, or is not."""

    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


HEADS = (Column("ID"), Column("NAME", least=4), Column("SIZE", right=True), Column("NOTE", least=5))


def test_columns_align_and_nothing_trails() -> None:
    assert table(HEADS, [("j1", "train", "2", ""), ("j22", "x", "10", "why")], 80, False) == [
        "ID   NAME   SIZE  NOTE",
        "j1   train     2",
        "j22  x        10  why",
    ]


@pytest.mark.parametrize("limit", [24, 30, 40, 80])
def test_a_table_fits_by_cutting_the_last_columns_first(limit: int) -> None:
    rows = [("j1", "a long name of a job", "2", "a long note on a job")]
    lines = table(HEADS, rows, limit, False)
    assert all(columns(line) <= limit for line in lines)
    assert limit < 40 or "a long name of a job" in lines[1]


def test_colours_are_for_terminals_unless_somebody_says_otherwise() -> None:
    terminal, pipe = Stream(True), Stream(False)
    assert has_colours(terminal, {})  # type: ignore[arg-type]
    assert not has_colours(pipe, {})  # type: ignore[arg-type]
    assert not has_colours(terminal, {"NO_COLOR": "1"})  # type: ignore[arg-type]
    assert not has_colours(terminal, {"TERM": "dumb"})  # type: ignore[arg-type]
    assert has_colours(pipe, {"FORCE_COLOR": "1"})  # type: ignore[arg-type]


def test_times_have_the_name_of_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    try:
        assert moment(0.0, 1.0) == "02:00:00 XYZ"
        assert moment(0.0, 1e9) == "1970-01-01 02:00:00 XYZ"
    finally:
        monkeypatch.undo()
        time.tzset()
