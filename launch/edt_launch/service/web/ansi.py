"""Lines of logs with their colours: as text, and the names of classes."""

import re
from collections.abc import Iterator

from edt_launch.service.web import wording

_COLOUR = re.compile(r"\x1b\[([0-9;]{0,32})m")
_OF_MANY = re.compile(r"[34]8;(?:5;\d+|2;\d+;\d+;\d+)")
"""One of 256 or more colours: it is left out."""

Piece = tuple[str, str]
"""A text, and the classes that it has: ``bold``, and ``ansi-1`` (red) to ``ansi-7``; empty for none."""


def pieces(line: bytes) -> list[Piece]:
    """A line, in pieces of one look each; of what was overwritten in it, only the last is left.

    Whatever else steers a terminal is left out.
    """
    text = line.decode(errors="replace").rstrip("\r").rpartition("\r")[2]
    return [(shown, look) for part, look in _looks(text) if (shown := wording.printable(part))]


def _looks(text: str) -> Iterator[Piece]:
    colour, is_bold, at = "", False, 0
    for found in _COLOUR.finditer(text):
        yield text[at : found.start()], _classes(colour, is_bold)
        at = found.end()
        for code in _OF_MANY.sub("39", found[1]).split(";"):
            match code:
                case "" | "0":
                    colour, is_bold = "", False
                case "1" | "22":
                    is_bold = code == "1"
                case "39":
                    colour = ""
                case _ if re.fullmatch("[39][1-7]", code):
                    colour = f"ansi-{code[-1]}"
    yield text[at:], _classes(colour, is_bold)


def _classes(colour: str, is_bold: bool) -> str:
    return " ".join(filter(None, (colour, "bold" if is_bold else "")))
