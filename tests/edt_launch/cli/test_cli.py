import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli_service import EVAL, TRAIN, CliService
from edt_launch.cli import main
from ended import Edt

SLOW = {
    "alembic", "fastapi", "httpx2", "matplotlib", "numpy", "pathspec", "psutil", "pydantic", "rich",
    "sqlalchemy", "starlette", "torch", "uvicorn",
}  # fmt: skip


def imported_by(*words: str) -> set[str]:
    """What a command has imported when its process ends."""
    code = (
        "import sys\nfrom edt_launch.cli.main import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("--help",), ("ps",), ("submit", "--help")])
def test_nothing_slow_is_imported(service: CliService, words: tuple[str, ...]) -> None:
    found = imported_by(*words)
    assert {name.partition(".")[0] for name in found} & SLOW == set()
    assert not any(name.startswith(("edt_launch.service", "edt_launch.service.jobs.loop")) for name in found)
    commands = {name for name in found if name.startswith("edt_launch.cli.commands.")}
    assert len(commands) == (0 if words == ("--help",) else 1)


LISTED = [name for name, (_, summary) in main.COMMANDS.items() if summary]
"""The others are not for users."""


def test_help_lists_every_command(edt: Edt) -> None:
    ended = edt("--help")
    assert ended.code == 0
    assert all(f"\n  {name} " in ended.out for name in LISTED)
    assert all(len(line) <= 80 for line in ended.out.splitlines())


@pytest.mark.parametrize("name", [name for name in LISTED if name not in ("serve", "simulate")])
def test_every_command_has_help(edt: Edt, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ended = edt(name, "--help")
    assert ended.code == 0
    assert f"Usage: edt {name}" in ended.out
    assert all(len(line) <= 80 for line in ended.out.splitlines())


def test_a_typing_error_is_a_usage_error_with_a_suggestion(edt: Edt) -> None:
    ended = edt("submitt")
    assert (ended.code, ended.out) == (2, "")
    assert "Did you mean 'submit'" in ended.err
    assert "see 'edt --help'" in ended.err


def test_usage_errors_are_json_too(edt: Edt) -> None:
    ended = edt("set", "j", "--min", "x", "--json")
    error = json.loads(ended.out)["error"]
    assert (ended.code, error["exit_code"], ended.err) == (2, 2, "")
    assert error["detail"]
    assert "Input should" not in error["detail"]


@pytest.mark.parametrize(
    "user, words, status, code",
    [
        ("edt_unknown", ("show", TRAIN), 401, 5),
        ("bob", ("show", TRAIN, "--series"), 403, 5),
        ("bob", ("show", "jnothing"), 404, 6),
        ("admin", ("rm", TRAIN), 409, 1),
    ],
)
def test_exit_codes(
    edt: Edt, service: CliService, user: str, words: tuple[str, ...], status: int, code: int
) -> None:
    service.log_on(user)
    plain, as_json = edt(*words), edt(*words, "--json")
    assert plain.code == as_json.code == code
    assert plain.err.startswith("edt: ")
    assert json.loads(as_json.out)["error"]["status"] == status


def test_an_absent_service_has_a_code_and_a_way_out(
    edt: Edt, service: CliService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDT_URL", "http://127.0.0.1:9")
    ended = edt("ps")
    assert ended.code == 3
    assert "edt serve" in ended.err
    assert all(len(line) <= 80 for line in ended.err.splitlines())


def test_output_that_cannot_be_written_is_told_and_is_no_mistake_of_ours(service: CliService) -> None:
    command = [sys.executable, "-m", "edt_launch.cli", "ps"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "edt: standard output cannot be written: No space left on device\n"


def test_our_own_mistakes_leave_a_report_and_no_traceback(
    edt: Edt, service: CliService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("edt_launch.cli.session.load", lambda _: 1 / 0)
    ended = edt("ps")
    assert ended.code == 4
    assert "Traceback" not in ended.err
    (report,) = tmp_path.glob("edt-*.txt")
    assert "ZeroDivisionError" in report.read_text()
    assert report.name in ended.err.replace("\n", "").replace(" ", "")


def test_standard_streams_may_be_closed(service: CliService) -> None:
    command = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "edt_launch.cli", "ps"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_has_enough_sees_no_error(service: CliService) -> None:
    service.print(*(f"[0] line {i}" for i in range(20000)))
    code = f"{sys.executable} -m edt_launch.cli logs {TRAIN} | head -n 1"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[0] line 0\n", "")


@pytest.mark.parametrize(
    "line, found",
    [("edt show jb", {EVAL}), ("edt shares --", {"--weight", "--limit"})],
)
def test_the_shell_completes(service: CliService, line: str, found: set[str]) -> None:
    words = line.split(" ")
    environment = {"_EDT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    code = (
        "import sys; sys.argv[0] = 'edt'; from edt_launch.cli import main, session\n"
        "session.COMPLETION_TIMEOUT = 60.0; main.main()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    completed = set(done.stdout.split())
    assert found <= completed if line.endswith("--") else found == completed


def test_arguments_that_are_no_text_are_refused(edt: Edt) -> None:
    ended = edt("submit", "--env", "A=s3cret\udcff", "--", "true")
    assert ended.code == 2
    assert "argument 3 is no text in UTF-8" in ended.err
    assert "s3cret" not in ended.err


def test_a_deleted_folder_is_no_mistake_of_ours(
    edt: Edt, service: CliService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    ended = edt("submit", "--", "true")
    assert ended.code == 2
    assert "current directory was deleted" in ended.err
