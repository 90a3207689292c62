"""The demo, over a stand-in for edt-launch: a small program that trains as its allocation file says."""

import os
import signal
import sys
import textwrap
import time

from started import gone, started


def launcher(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", textwrap.dedent(program))


def test_a_signal_reaches_the_job_once_and_ends_the_demo_with_it(tmp_path):
    number = signal.SIGINT
    program = """
        import os, pathlib, signal, sys, time
        got = []
        for number in (1, 2, 15):
            signal.signal(number, lambda number, _: got.append(number))
        pathlib.Path("ready").write_text(str(os.getpid()))
        while not got:
            time.sleep(0.01)
        pathlib.Path("got").write_text(str(got))
        sys.exit(128 + got[0])
    """
    source = (
        "import sys; from edt_launch.tools.demo.command import *; "
        "sys.exit(run(['x'], Path(), launcher=sys.argv[1:])[0])"
    )
    command = [sys.executable, "-c", source, *launcher(program)]
    with started(command, cwd=tmp_path, start_new_session=True) as shell:
        ready = tmp_path / "ready"
        while not (ready.exists() and ready.read_text()):
            assert shell.poll() is None
            time.sleep(0.01)
        os.killpg(shell.pid, number)  # as a terminal does: to everybody in the group
        assert shell.wait(timeout=60) == 128 + number
    assert (tmp_path / "got").read_text() == f"[{int(number)}]"
    assert gone(int(ready.read_text()))
