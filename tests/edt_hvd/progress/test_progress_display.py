"""Lines of progress, and what they say; the bar is in tests/system/test_progress.py."""

import io

import pytest

from edt_hvd.progress.progress_display import LINE_INTERVAL, Lines, line_of
from edt_messages.messages import Progress
from edt_messages.records import Value


def progress(step: int, **values: Value) -> Progress:
    return Progress(step, 0, 2, values)


def test_a_line_is_printed_now_and_then_and_at_the_end() -> None:
    out = io.StringIO()
    lines = Lines(out)
    for step, now in enumerate((5.0, 6.0, 5.0 + LINE_INTERVAL, 40.0, 41.0)):
        lines.show(progress(step), now)
    assert out.getvalue().splitlines() == ["step 0, epoch 0, 2 workers", "step 2, epoch 0, 2 workers"]
    lines.end()
    assert out.getvalue().splitlines()[2:] == ["step 4, epoch 0, 2 workers"]
    lines.end()
    assert len(out.getvalue().splitlines()) == 3


@pytest.mark.parametrize(
    "shown, expected",
    [
        (
            progress(3, total_steps=90, loss=0.123456, name="x"),
            "step 3 of 90, epoch 0, loss 0.1235, name x, 2 workers",
        ),
        (Progress(3, None, 1, {"accuracy": 1}), "step 3, accuracy 1, 1 worker"),
    ],
)
def test_a_line_says_all_that_is_known(shown: Progress, expected: str) -> None:
    assert line_of(shown) == expected
