"""How a script is run: as by Python itself, with a few things seen to."""

import os
import subprocess
from pathlib import Path

import pytest

from interpreters import Interpreters


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "a model's folder"
    folder.mkdir()
    return folder / "main.py"


def run(
    importing: Interpreters, script: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    program = (
        f"import os, sys\nfrom edt_hvd.wmla import script\nos.chdir({str(script.parent)!r})\n"
        f"sys.argv[1:] = {[script.name, *arguments]!r}\nscript.main()\n"
    )
    return importing.run(program, os.environ | environment)


def test_a_script_sees_what_it_would_see_without_us(script: Path, importing: Interpreters) -> None:
    (script.parent / "near.py").touch()
    script.write_text(
        "import sys, os, near\n"
        "def function(): pass\n"
        "print(sys.argv, sys.path[0], __name__, function.__module__, __file__, sep='|')\n"
        "assert sys.modules['__main__'].function is function\n"
        "sys.exit(7)\n"
    )
    done = run(importing, script, "--epochs", "3")
    assert done.returncode == 7, done.stderr
    argv = [str(script), "--epochs", "3"]
    assert done.stdout == f"{argv}|{script.parent}|__main__|__main__|{script}\n"


def test_an_error_is_shown_as_if_we_were_not_there(script: Path, importing: Interpreters) -> None:
    script.write_text("def fail():\n    raise ValueError('on purpose')\nfail()\n")
    done = run(importing, script)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{script}", line 3, in <module>'
    assert lines[-1] == "ValueError: on purpose"


def test_a_job_that_goes_on_draws_the_same_random_numbers(script: Path, importing: Interpreters) -> None:
    script.write_text(
        "import random, numpy, torch\nprint(random.random(), numpy.random.rand(), torch.rand(1))\n"
    )

    def draw(job: str) -> str:
        return run(importing, script, EDT_WMLA_LAUNCHER="0", DLI_EXECID=job).stdout.splitlines()[-1]

    assert draw("one") == draw("one") != draw("two")


@pytest.mark.parametrize("package, is_refused", [("keras", True), ("nobody_has", False)])
def test_a_framework_that_is_not_trained_here_is_refused(
    script: Path, importing: Interpreters, package: str, is_refused: bool
) -> None:
    script.write_text(f"import {package}.layers\n")
    done = run(importing, script)
    assert done.returncode == 1
    assert f"ModuleNotFoundError: No module named '{package}'" in done.stderr
    assert ("PyTorch" in done.stderr.splitlines()[-1]) is is_refused


def test_the_names_of_the_platforms_modules_are_found_and_a_users_own_module_wins(
    script: Path, importing: Interpreters
) -> None:
    (script.parent / "emetrics.py").write_text("EMetrics = 'mine'\n")
    script.write_text(
        "from emetrics import EMetrics\nimport callbacks, pyedt.fabric_model\nprint(EMetrics)\n"
    )
    assert run(importing, script).stdout == "mine\n"


def test_loggers_that_programs_usually_bring_are_there_without(
    script: Path, importing: Interpreters, tmp_path: Path
) -> None:
    script.write_text("""
from edtcallback import EDTLoggerCallback
from elog import ELog
EDTLoggerCallback().log_train_metrics({"loss": 0.5, "accuracy": 25.0}, 3, 0)
with ELog.open() as log:
    log.recordTrain("Train", 4, 5, 0.25, 0.5, 0)
    log.recordTest("Test", {"loss": 0.5, "accuracy": 0.75})
""")
    done = run(importing, script, LOG_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = [line.split(",\t") for line in (tmp_path / "stdout").read_text().splitlines()]
    assert [row[2:] for row in rows] == [
        ["Global steps: 3", "Iteration: 3", "Loss: 0.50000", "Accuracy: 0.25000"],
        ["Global steps: 5", "Iteration: 4", "Loss: 0.25000", "Accuracy: 0.50000"],
        ["Loss: 0.50000", "Accuracy: 0.75000"],
    ]
