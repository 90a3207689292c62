import pytest

from edt_launch.core.text.terminal_text import visible, without_sequences


@pytest.mark.parametrize(
    "line, shown",
    [
        ("[0] \x1b[31mred\x1b[0m and \x1b[1;38;5;9mbold\x1b[m", "[0] red and bold"),
        ("[0] \x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "[0] ab"),
        ("[0] \x1b[2J\x1b[Hcleared\x1bc", "[0] cleared"),
        ("[0] 10 %\r[0] 20 %", "[0] 10 % [0] 20 %"),
        ("[0] bell\x07, C1 \x9b31m, tab\there", "[0] bell\ufffd, C1 \ufffd31m, tab here"),
        ("[0] Übung", "[0] Übung"),
        ("a\x1b]0;without an end", "a"),
    ],
)
def test_nothing_in_a_line_steers_a_terminal(line: str, shown: str) -> None:
    assert visible(without_sequences(line)) == shown
