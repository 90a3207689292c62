import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpu_check
from gpu_check import LIMIT, check
from gpu_check_parts import ROOT, SET_UP, Part, parts
from gpu_check_report import Report

LONG = 300
"""Seconds that no test waits for."""

HANGING = (
    "import pathlib, signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "command = [sys.executable, '-c', 'import time; time.sleep(300)'];"
    "child = subprocess.Popen(command, start_new_session=True);"
    "pathlib.Path(sys.argv[1]).write_text(str(child.pid)); print('so far', flush=True); time.sleep(300)"
)
"""Ignores SIGTERM, and has a child in a session of its own, whose number it writes down."""


def part(name: str, code: str = "", *words: object, limit: float = LONG, **more: Any) -> Part:
    command = (sys.executable, "-c", code, *map(str, words))
    return Part(name, f"what {name} shows", command, limit, **{"needs": (), "needs_gpu": False, **more})


def report_of(folder: Path, *chosen: Part) -> Report:
    return Report(folder, {"gpu": "a card"}, chosen, {}, begun=0.0)


def written(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def statuses(folder: Path) -> dict[str, str]:
    return {row["name"]: row["status"] for row in written(folder)["parts"]}


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.01)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_limits_fit_into_eight_minutes_and_the_most_important_comes_first(
    tmp_path: Path, device: str
) -> None:
    chosen = parts(tmp_path, tmp_path, device)
    assert sum(each.limit for each in chosen) <= 480
    assert LIMIT + gpu_check.GRACE < 480
    names = [each.name for each in chosen]
    assert names[:5] == [SET_UP, "doctor", "kernels", "bits", "resizes"]
    for number, each in enumerate(chosen):
        assert set(each.needs) <= set(names[:number])
        scripts = [word for word in each.command if word.startswith(("benchmarks/", "tests/"))]
        assert all((ROOT / script).is_file() for script in scripts)


def test_a_failing_part_fails_the_check_and_the_others_still_run(tmp_path: Path) -> None:
    report = report_of(
        tmp_path,
        part("bad", "print('why'); raise SystemExit(7)"),
        part("dependent", needs=("bad",)),
        part("independent", """print('noise'); print('{"seconds":\\n 3}')"""),
        part("missing", needs=("nobody",)),
        part("skipping", "print('SKIPPED [1] no GPU here')", refused="no GPU"),
    )
    assert check(report, has_gpu=True, limit=LONG) == 1
    found = written(tmp_path)
    assert found["result"] == "failed"
    assert statuses(tmp_path) == {
        "bad": "failed",
        "dependent": "not run",
        "independent": "passed",
        "missing": "passed",
        "skipping": "failed",
    }
    assert [row["reason"] for row in found["parts"]] == [
        "exit code 7",
        "needs bad: failed",
        "",
        "",
        "its output says: no GPU",
    ]
    assert found["parts"][0]["tail"] == ["why"]
    assert found["parts"][2]["figures"] == {"seconds": 3}
    assert "why" in (tmp_path / "bad.log").read_text()
    assert "exit code 7" in (tmp_path / "report.txt").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_cut_leaves_a_valid_report_and_no_process(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; from pathlib import Path; import gpu_check; from gpu_check_parts import Part\n"
        "gpu_check.CUT_GRACE = 0.0\n"
        f"words = (sys.executable, '-c', {HANGING!r}, {str(tmp_path / 'child')!r})\n"
        "made = [Part('done', '', (sys.executable, '-c', ''), 300, (), False),\n"
        "        Part('under way', '', words, 300, (), False), Part('later', '', words, 300, (), False)]\n"
        "gpu_check.parts = lambda *_: tuple(made)\n"
        "sys.exit(gpu_check.main(['--no-setup', '--out', sys.argv[1]]))\n"
    )
    out = tmp_path / "out"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    with subprocess.Popen([sys.executable, program, out], env=environment) as process:
        log = out / "under way.log"
        wait_for(lambda: log.exists() and "\nso far" in log.read_text())
        assert statuses(out)["under way"] == "running"
        process.send_signal(number)
    assert process.returncode == 128 + number
    assert statuses(out) == {"done": "passed", "under way": "cut", "later": "not run"}
    assert written(out)["result"] == "cut"
    assert number.name in (out / "report.txt").read_text()
    assert is_gone(int((tmp_path / "child").read_text()))
    assert not list(out.glob("*.new"))


def test_without_a_gpu_nothing_that_needs_one_counts_as_passed(tmp_path: Path) -> None:
    chosen = part("plain"), part("kernels", needs_gpu=True)
    assert check(report_of(tmp_path, *chosen), has_gpu=False, limit=LONG) == 3
    assert statuses(tmp_path) == {"plain": "passed", "kernels": "skipped"}
    assert written(tmp_path)["parts"][1]["reason"] == "no GPU"
    assert check(report_of(tmp_path, *chosen), has_gpu=True, limit=LONG, rehearsal=True) == 3
    assert statuses(tmp_path) == {"plain": "passed", "kernels": "rehearsed"}
