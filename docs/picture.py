"""Record the README's picture: run a command in a terminal of its own and save what the screen shows as SVG.

    python docs/picture.py docs/images/demo.svg edt demo examples/digits.py

The picture has two screens: the last one before the first line matching `--moment` was printed, and the end.
"""

import argparse
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from io import StringIO
from itertools import groupby

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLOURS = {"brown": "yellow", "brightbrown": "bright_yellow", "default": None}


def main() -> None:
    """Record, and write the picture."""
    parser = argparse.ArgumentParser(description="Save what a command shows in a terminal as SVG.")
    parser.add_argument("--columns", type=int, default=96, help="width of the terminal, in characters")
    parser.add_argument("--rows", type=int, default=40, help="height of the terminal, in lines")
    parser.add_argument(
        "--moment", default=r"epoch 20\b", help="regular expression: the moment of the first screen"
    )
    parser.add_argument(
        "--live-rows", type=int, default=14, help="lines of the first screen, from its bottom"
    )
    parser.add_argument(
        "--end-rows", type=int, default=18, help="lines of the second screen, from its bottom"
    )
    parser.add_argument("svg", help="the file to write")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run")
    args = parser.parse_args()
    live, end, code = record(args.command, args.columns, args.rows, re.compile(args.moment))
    if code != 0:
        sys.exit(f"{' '.join(args.command)} ended with exit code {code}; no picture is made of that")
    console = Console(record=True, width=args.columns, file=StringIO())
    console.print(Text("$ " + " ".join(args.command), style="bold"))
    for screen, rows in ((live, args.live_rows), (end, args.end_rows)):
        console.print(*screen[-rows:], sep="\n", highlight=False, no_wrap=True)
        if screen is live:
            console.print(Text("...", style="dim"))
    svg = console.export_svg(title=" ".join(args.command))
    with open(args.svg, "w", encoding="utf-8") as file:  # without the font that rich has browsers fetch
        file.write(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


def record(
    command: list[str], columns: int, rows: int, moment: re.Pattern[str]
) -> tuple[list[Text], list[Text], int]:
    """Run a command; returns the screen at the moment, the screen at the end and the exit code."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)}
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    live: list[Text] = []
    while chunk := read(terminal):
        stream.feed(chunk)
        sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
        if not live and any(moment.search(line) for line in screen.display):
            live = lines(screen)
    return live, lines(screen), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def read(terminal: int) -> bytes:
    """The next bytes of the terminal; none when its last user has closed it."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def lines(screen: pyte.Screen) -> list[Text]:
    """The screen's lines with their colours, without the empty ones at its end."""
    texts = []
    for row in range(screen.lines):
        cells = [screen.buffer[row][column] for column in range(screen.columns)]
        text = Text(end="")
        for run_style, run in groupby(cells, key=style):
            text.append("".join(cell.data for cell in run), run_style)
        text.rstrip()
        texts.append(text)
    while texts and not texts[-1].plain:
        texts.pop()
    return texts


def style(cell: pyte.screens.Char) -> Style:
    """A cell's style in rich's terms."""
    fore, back = (colour(name) for name in (cell.fg, cell.bg))
    return Style(color=fore, bgcolor=back, bold=cell.bold, italic=cell.italics, reverse=cell.reverse)


def colour(name: str) -> str | None:
    """A colour's name in rich's terms."""
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return COLOURS.get(name, name.replace("bright", "bright_"))


if __name__ == "__main__":
    main()
