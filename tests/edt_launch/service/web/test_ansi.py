import pytest

from edt_launch.service.web.ansi import Piece, pieces


@pytest.mark.parametrize(
    "line, shown",
    [
        (b"plain <b>", [("plain <b>", "")]),
        (b"a \x1b[31mred\x1b[0m b", [("a ", ""), ("red", "ansi-1"), (" b", "")]),
        (b"\x1b[1;92mgood\x1b[22m, still", [("good", "ansi-2 bold"), (", still", "ansi-2")]),
        (b"10%\r\x1b[32m20%\r", [("20%", "ansi-2")]),
        (b"\x1b[38;5;1mx\x1b[2Jy\x1b]0;title\x07z", [("xyz", "")]),
        (b"\xff\x00", [("\ufffd", "")]),
    ],
)
def test_colours_are_classes_and_all_else_is_text(line: bytes, shown: list[Piece]) -> None:
    assert pieces(line) == shown
