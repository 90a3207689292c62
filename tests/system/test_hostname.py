"""A machine whose own name leads nowhere, as laptops and containers have it."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness import TRACED

OTHER_NAME = (
    "unshare",
    "--map-root-user",
    "--uts",
    "sh",
    "-c",
    'hostname no-such-host.invalid; exec "$@"',
    "sh",
)


def is_allowed() -> bool:
    return subprocess.run([*OTHER_NAME, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not is_allowed(), reason="the machine lets nobody have a host name of their own")
def test_no_process_needs_the_machines_own_name(tmp_path: Path) -> None:
    script = shlex.join([sys.executable, "-c", "import horovod.torch as hvd; hvd.init()"])
    launch = [
        sys.executable,
        "-m",
        "edt_launch.launcher.command",
        "--min-np",
        "2",
        "--max-np",
        "2",
        "--max-restarts",
        "0",
    ]
    job = shlex.join([*launch, str(TRACED), str(tmp_path), "--epochs", "1"])
    alone = f"HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo {script}"
    ended = subprocess.run(
        [*OTHER_NAME, "sh", "-c", f"{job} && {alone}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
