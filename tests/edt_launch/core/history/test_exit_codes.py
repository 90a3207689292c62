"""Exit codes in words."""

import pytest

from edt_launch.core.history.exit_codes import exit_text


@pytest.mark.parametrize(
    "exit_code, text",
    [
        (3, "exit code 3"),
        (143, "exit code 143 (SIGTERM)"),
        (-15, "killed by SIGTERM"),
        (255, "exit code 255"),
        (-200, "exit code -200"),
    ],
)
def test_an_exit_code_is_told_beside_the_signal_that_it_stands_for(exit_code: int, text: str) -> None:
    assert exit_text(exit_code) == text
