"""The demo, over a stand-in for edt-launch: a small program that trains as its allocation file says."""

import os
import signal
import sys
import textwrap
import time

from edt_launch.cluster.allocation import parse
from edt_launch.tools.demo import command as demo
from edt_launch.tools.demo.command import DemoProgress
from started import gone, started

# Waits at every quarter for the size to change, for as long as a slow machine may need.
LAUNCHER = """
    import json, pathlib, sys, time
    options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    folder = pathlib.Path(options["--output-dir"])
    size, sizes = None, []

    def slots():
        lines = pathlib.Path(options["--allocation"]).read_text().splitlines()
        return int(lines[1].split(":")[1].split()[0])

    with open(folder / "events.jsonl", "a", buffering=1) as events:
        for step in range(1, 9):
            if step in (1, 3, 5, 7):
                deadline = time.monotonic() + 60
                while slots() == size and time.monotonic() < deadline:
                    time.sleep(0.01)
                size = slots()
                sizes.append(size)
            values = {"total_steps": 8, "loss": 1 / step, "accuracy": step / 10}
            event = {"event": "progress", "time": 0, "step": step, "epoch": 0, "size": size, "values": values}
            text = json.dumps(event) + "\\n"
            events.write(text[:10])
            events.write(text[10:])
    print(sizes, sys.argv[-2:])
"""


def launcher(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", textwrap.dedent(program))


def test_asks_for_every_size_in_turn(tmp_path, capfd):
    exit_code, progress = demo.run(["a script.py", "--delay"], tmp_path, launcher=launcher(LAUNCHER))
    assert exit_code == 0
    assert capfd.readouterr().out.strip() == "[2, 4, 1, 3] ['a script.py', '--delay']"
    assert progress == DemoProgress(stage=3, size=3, done=1.0, accuracy=0.8)
    assert parse((tmp_path / "allocation").read_text()).generation == 4


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
