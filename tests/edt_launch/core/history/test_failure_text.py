"""A failure's text is what `edt-launch` prints last."""

import pytest

from edt_launch.core.history.failure_text import cause

RANK = "edt-launch: the job failed: rank 0 on node1 failed\nfirst failure: rank 0 on node1, exit code 3\n"


@pytest.mark.parametrize(
    "text, shown",
    [
        (None, ""),
        ("lost", "lost"),
        (
            f"{RANK}  | working\nlog: rank.0.log\ncause: KeyError: 'a' (t.py, line 14)",
            "KeyError: 'a' (t.py, line 14)",
        ),
        (f"{RANK}  | working\n  | no data\n  | \nlog: rank.0.log", "rank 0 on node1, exit code 3: no data"),
        (f"{RANK}  (it has printed nothing)\nlog: rank.0.log", "rank 0 on node1, exit code 3"),
        (
            "edt-launch: the job failed: its driver ended with exit code 1\n  | No such file\nlog: a",
            "the job failed: its driver ended with exit code 1: No such file",
        ),
    ],
)
def test_one_line_names_the_cause(text: str | None, shown: str) -> None:
    assert cause(text) == shown
