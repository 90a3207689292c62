"""Where no launcher shows how far training is, the script does: a bar on terminals, lines elsewhere."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from harness import MPI_ENVIRONMENT, MPIRUN, PROGRAMS
from tiers import full

REPORTING = [sys.executable, PROGRAMS / "reporting.py"]
COMMANDS = {"python": REPORTING, "mpirun": [*MPIRUN, "2", *REPORTING]}
WORKERS = {"python": "1 worker", "mpirun": "2 workers"}
ENVIRONMENT = {
    "python": {"TERM": "xterm"},
    "mpirun": {**MPI_ENVIRONMENT, "TERM": "xterm"},
}
PRINTED = ["epoch 1 is done", "epoch 2 is done", "epoch 3 is done"]


def on_a_terminal(command: list[str | Path], environment: dict[str, str]) -> str:
    """What a command prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | environment,
        start_new_session=True,
    )
    os.close(theirs)
    printed = b""
    try:
        while block := os.read(ours, 4096):
            printed += block
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, printed.decode()
    return printed.decode()


@pytest.mark.parametrize("started", ["python", full("mpirun")])
def test_a_terminal_shows_a_bar_below_what_is_printed(started: str) -> None:
    printed = on_a_terminal(COMMANDS[started], ENVIRONMENT[started])
    assert "12/12" in printed
    assert f"epoch 3, loss 1.5, {WORKERS[started]}" in printed
    assert all(line in printed for line in PRINTED)
    assert printed.rfind("\x1b[?25h") > printed.rfind("\x1b[?25l"), "the cursor is back"


@pytest.mark.full
@pytest.mark.parametrize("started", ["python", "mpirun"])
def test_a_pipe_gets_the_first_progress_and_the_last(started: str) -> None:
    result = subprocess.run(
        COMMANDS[started],
        env=os.environ | ENVIRONMENT[started],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines() == PRINTED
    assert [line for line in result.stderr.splitlines() if line.startswith("step ")] == [
        f"step 1 of 12, epoch 0, loss 1.5, {WORKERS[started]}",
        f"step 12 of 12, epoch 3, loss 1.5, {WORKERS[started]}",
    ]
