import io
import json
import signal

import pytest

from edt_launch.cli.errors import NotAllowedError, UnreachableError
from edt_launch.cli.terminal.refresh import watch_lines, watch_values


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class Looks:
    """Answers that come one after the other; then the user presses Ctrl-C."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def look(self) -> list[str]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, list)
        return answer

    def pause(self, seconds: float) -> None:
        if not self.answers:
            raise KeyboardInterrupt


def test_a_service_that_goes_away_is_waited_for_and_the_last_picture_stays() -> None:
    screen = Terminal()
    looks = Looks(["one"], UnreachableError("nothing listens"), ["two"])
    watch_lines(looks.look, screen, looks.pause)
    pictures = screen.getvalue().split("\x1b[H")
    assert pictures[2] == "one\x1b[K\ntrying again: nothing listens\x1b[K\n\x1b[J"
    assert pictures[3].startswith("two\x1b[K\n\x1b[J")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(number: signal.Signals) -> None:
    screen = Terminal()
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended:
        watch_lines(Looks(["one"], ["two"]).look, screen, lambda _: signal.raise_signal(number))
    assert ended.value.code == 128 + number
    assert screen.getvalue().endswith("\x1b[?25h\x1b[?1049lone\n")
    assert signal.getsignal(number) is before


def test_a_token_that_is_revoked_ends_it_and_gives_the_terminal_back() -> None:
    screen, looks = Terminal(), Looks(["one"], NotAllowedError("revoked"))
    with pytest.raises(NotAllowedError):
        watch_lines(looks.look, screen, looks.pause)
    assert screen.getvalue().endswith("\x1b[?25h\x1b[?1049lone\n")


def test_values_are_printed_when_they_change() -> None:
    file = io.StringIO()
    looks = Looks(["a"], ["a"], UnreachableError("gone"), ["b"])
    watch_values(looks.look, "jobs", file, looks.pause)
    assert [json.loads(line) for line in file.getvalue().splitlines()] == [{"jobs": ["a"]}, {"jobs": ["b"]}]
