"""A machine whose own name leads nowhere, as laptops and containers have it."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness import TRACED

RENAMED = ["unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname nowhere.invalid && exec "$@"', "sh"]
LAUNCH = f"{sys.executable} -m edt_launch.launcher.command --min-np 2 --max-np 2 --max-restarts 0"
GLOO = "HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo"
ALONE = f"{GLOO} {sys.executable} -c 'import horovod.torch as hvd; hvd.init()'"


def run(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    words = [*RENAMED, "sh", "-c", command]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_no_process_needs_the_machines_own_name(tmp_path: Path) -> None:
    if run(tmp_path, "true").returncode != 0:
        pytest.skip("no new host name is allowed here")
    ended = run(tmp_path, f"{LAUNCH} {TRACED} . --epochs 1 && {ALONE}")
    assert ended.returncode == 0, ended.stdout + ended.stderr
