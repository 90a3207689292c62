"""Running the examples as their readers do: as programs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from light import LIGHT

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture
def run_example(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``[prefix...] python examples/<name> arguments...`` in an empty directory, output captured."""
    started = ("EDT_", "HOROVOD_", "OMPI_", "PMIX_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(started)}
    # As root Open MPI asks for these; the path is for a checkout that is not installed.
    clean |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    clean["PATH"] = f"{BIN}:{clean['PATH']}"
    clean["PYTHONPATH"] = os.pathsep.join([LIGHT, str(ROOT), str(ROOT / "launch")])

    def run(name: str, *arguments: str, prefix: tuple[str, ...] = (), **environment: str):
        launcher = [str(BIN / prefix[0]), *prefix[1:]] if prefix else []
        command = [*launcher, sys.executable, str(ROOT / "examples" / name), *arguments]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=clean | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
