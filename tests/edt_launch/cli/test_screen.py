import io

import pytest

from edt_launch.cli.screen import Column, columns, has_colours, table

HEADS = (Column("ID"), Column("NAME", least=4), Column("SIZE", right=True), Column("NOTE", least=5))


@pytest.mark.parametrize("limit", [24, 30, 40, 80])
def test_a_table_fits_by_cutting_the_last_columns_first(limit: int) -> None:
    rows = [("j1", "a long name of a job", "2", "a long note on a job")]
    lines = table(HEADS, rows, limit, False)
    assert all(columns(line) <= limit for line in lines)
    assert limit < 40 or "a long name of a job" in lines[1]


def test_colours_are_for_terminals_unless_somebody_says_otherwise() -> None:
    terminal, pipe = io.StringIO(), io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    assert has_colours(terminal, {})
    assert not has_colours(pipe, {})
    assert not has_colours(terminal, {"NO_COLOR": "1"})
    assert not has_colours(terminal, {"TERM": "dumb"})
    assert has_colours(pipe, {"FORCE_COLOR": "1"})
