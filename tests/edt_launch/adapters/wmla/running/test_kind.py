"""The options of edt-launch that WMLA programs have."""

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.kind import WmlaProgram
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import ExitCode
from edt_launch.launcher import command

RUNNER = [sys.executable, "-m", "edt_hvd.wmla.script"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working directory with a program, on a machine with three cores."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for path in ("a model/main.py", "a model/data.txt", "main.py"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).touch()
    Path("data").mkdir()
    return tmp_path


def invoke(*words):
    return CliRunner().invoke(command.app, words)


def test_a_program_its_folders_and_its_arguments(planned, folder):
    words = ("--max-np", "2", "--wmla", "--data-dir", "data", "--result-dir", "out")
    result = invoke(*words, "a model/main.py", "--", "--epochs", "3", "--", "-H")
    assert result.exit_code == 0
    ((program, plan),) = planned
    command = [*RUNNER, "main.py", "--epochs", "3", "--", "-H"]
    assert program == WmlaProgram(
        command, Framework.ELASTIC, folder / "a model", "main.py", folder / "data", Path("out")
    )
    assert plan.paths.root == folder / "out"
    assert plan.limits == SizeLimits(1, 2)


@pytest.mark.parametrize("script", ["sub/main.py", "./sub/main.py", "{here}/sub/main.py"])
def test_code_that_was_submitted_runs_in_its_model_directory(planned, folder, monkeypatch, script):
    model = folder / "out" / "_submitted_code" / "model"
    (model / "sub").mkdir(parents=True)
    (model / "sub" / "main.py").touch()
    monkeypatch.chdir(model)
    words = ("--wmla", "--output-dir", "../..", script.format(here=model), "--", "--epochs", "3")
    assert invoke(*words).exit_code == 0
    assert planned[0][0].command == [*RUNNER, "sub/main.py", "--epochs", "3"]
    assert (planned[0][0].framework, planned[0][0].code) == (Framework.ELASTIC, model)


@pytest.mark.parametrize("framework", ["PyTorch", "distPyTorch"])
def test_what_cannot_be_resized_has_all_of_its_workers_from_the_beginning(planned, framework):
    assert invoke("--wmla", "--framework", framework, "--max-np", "3", "main.py").exit_code == 0
    assert planned[0][1].limits == SizeLimits(3, 3)
    assert planned[0][0].framework == framework


@pytest.mark.parametrize(
    "words, said",
    [
        (["--wmla", "main.py", "--epochs", "3"], "put -- between"),
        (["--data-dir", "data", "main.py"], "--data-dir: for WMLA programs alone"),
        (["--wmla", "--result-dir", ".", "main.py"], "is the folder of main.py"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(planned, words, said):
    result = invoke(*words)
    assert result.exit_code == ExitCode.USAGE
    assert said in result.output
    assert not planned
