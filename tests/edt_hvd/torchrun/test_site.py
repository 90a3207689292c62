"""A worker that is not forked is prepared when its program has imported torch, and its processes are not."""

import os
import subprocess
import sys
from pathlib import Path

import edt_hvd.torchrun

SITE = Path(edt_hvd.torchrun.__file__).parent / "site"

PROGRAM = """
import os, subprocess, sys
print("program", os.environ.get("EDT_PREPARE"))
import torch
print("trains", torch.name)
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


def run(folder: Path, **variables: str) -> list[str]:
    files = {
        "torch.py": "name = 'torch'\nprint('torch')",
        "prepare.py": "import torch\ndef install(): print('install')\ndef begin(): print('begin')",
        "sitecustomize.py": "print('the next one')",
        "program.py": PROGRAM,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{SITE}:{folder}", "PYTHONUNBUFFERED": "1", **variables}
    done = subprocess.run(
        [sys.executable, folder / "program.py"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_worker_is_prepared_once(tmp_path: Path) -> None:
    plain = ["the next one", "program None", "torch", "trains torch"]
    found = run(tmp_path, EDT_WORKER="0", EDT_PREPARE="prepare")
    assert found == ["the next one", "program None", "torch", "install", "begin", "trains torch", *plain]


def test_other_processes_are_not(tmp_path: Path) -> None:
    assert "begin" not in run(tmp_path, EDT_PREPARE="prepare")
