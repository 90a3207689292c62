"""Make the virtual environment, with everything built and installed; at once when nothing changed.

``make setup`` runs this with the interpreter to make the environment of, and with the Makefile's settings
in variables that begin with ``EDT_``. uv installs what ``uv.lock`` pins, while Horovod is built beside it.
Standard library only: it runs before anything is installed.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from horovod_wheel import usable_cuda
from packages import ROOT, TORCHVISION, adjust_environment, export_pins, locked
from steps import SetUpError, run, run_steps, start, step

VENV = ROOT / os.environ.get("EDT_VENV", ".venv")
PYTHON, KEPT = VENV / "bin" / "python", VENV / "kept.txt"
LOGS = ROOT / "build" / VENV.name / "log"
SETTINGS = ("EDT_TORCH", "EDT_WHEELS", "EDT_CUDA")
INPUTS = (
    "pyproject.toml", "uv.lock", "CMakeLists.txt", "native/**/*.*", "edt_hvd/torchvision_hook.py",
    "tools/set_up.py", "tools/horovod_wheel.py", "tools/packages.py",
)  # fmt: skip


def restore_settings() -> None:
    """Take from an environment what it was made with: settings that are not given, and its interpreter."""
    file = VENV / "settings.json"
    made_with = json.loads(file.read_text()) if file.exists() else {}
    for name in SETTINGS:
        os.environ[name] = os.environ.get(name) or made_with.get(name, "")
    base = made_with.get("python", "")
    if os.environ.get("EDT_PYTHON") or not os.access(base, os.X_OK):
        inside = Path(sys.prefix).resolve() == VENV.resolve()
        base = os.path.realpath(sys.executable) if inside else sys.executable
    if base != sys.executable:
        os.execv(base, [base, __file__])


def check_tools() -> None:
    """Check what only the machine can bring; all that is missing is named in one error."""
    python, version = sys.executable, f"{sys.version_info.major}.{sys.version_info.minor}"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    compilers = filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++"))
    found = {
        "a C++ compiler (c++): Debian/Ubuntu: apt install g++; Fedora: dnf install gcc-c++":
            any(map(shutil.which, compilers)),
        "make: Debian/Ubuntu: apt install make; Fedora: dnf install make": shutil.which("make"),
        f"Python's module venv ({python}): Debian/Ubuntu: apt install python{version}-venv":
            importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"),
        f"Python's header Python.h for {python}: Debian/Ubuntu: apt install python{version}-dev; "
        f"Fedora: dnf install python{version}-devel": header.is_file(),
    }  # fmt: skip
    if missing := [name for name, value in found.items() if not value]:
        rest = "Without administrator rights: conda has gxx and make; its Python has the Python parts."
        raise SetUpError("\n  ".join(["these are missing:", *missing, rest]))


def kept_torch() -> ModuleType | None:
    """Return the interpreter's own torch if that is to be kept: where it was asked for, or uses CUDA here."""
    wanted = os.environ["EDT_TORCH"]
    if wanted not in ("", "present"):
        return None
    try:
        import torch
    except (ImportError, OSError):
        if not wanted:
            return None
        advice = "install one there, or name a version: TORCH=2.13.0"
        raise SetUpError(f"TORCH=present, but {sys.executable} has no torch: {advice}") from None
    return torch if wanted or usable_cuda(torch) else None


def dependencies(packages: Iterable[str], found: set[str]) -> set[str]:
    """Add packages and all that they depend on to those found, as far as they are installed."""
    for package in packages:
        name = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", package)[0]).lower()
        if name not in found:
            with suppress(importlib.metadata.PackageNotFoundError):
                required = importlib.metadata.requires(name) or ()
                found.add(name)
                dependencies(required, found)
    return found


def make_venv(log: Path, torch: ModuleType | None) -> None:
    """Make the environment; it sees the packages of the interpreter whose torch is kept."""
    if VENV.exists() and not (VENV / "pyvenv.cfg").exists() and any(VENV.iterdir()):
        raise SetUpError(f"{VENV} is no virtual environment: move it away, or name another folder: VENV=DIR")
    if " " in str(VENV):
        raise SetUpError(f"Horovod cannot be built in '{VENV}', with a space: name another folder: VENV=DIR")
    run(log, sys.executable, "-m", "venv", "--clear", *(["--system-site-packages"] if torch else []), VENV)
    fresh = VENV / "settings.new"
    fresh.write_text(json.dumps({name: os.environ[name] for name in SETTINGS} | {"python": sys.executable}))
    fresh.replace(VENV / "settings.json")
    if torch:
        # An interpreter that is itself a virtual environment passes nothing on by that option.
        packages = next(VENV.glob("lib/python*/site-packages"))
        (packages / "_edt_base_torch.pth").write_text(f"{Path(str(torch.__file__)).parents[1]}\n")
        KEPT.write_text("\n".join(dependencies(("torch", "torchvision", "numpy"), set())))


def install(log: Path, *arguments: str | Path) -> None:
    """Install with uv what is not kept of the interpreter's own."""
    excludes = ("--excludes", KEPT) if KEPT.exists() else ()
    run(log, "uv", "pip", "install", *excludes, *arguments)


def digest() -> str:
    """Return a digest of all that the environment depends on."""
    # The environment has the path of each package: a module that becomes one is found there no more.
    packages = sorted(map(str, [*ROOT.glob("edt_*/**/__init__.py"), *ROOT.glob("launch/**/__init__.py")]))
    settings = [os.environ["EDT_CUDA"], os.environ["EDT_TORCH"]]
    parts = [sys.version, sys.executable, str(VENV), *settings, *packages]
    total = hashlib.sha256("\0".join(parts).encode())
    for file in sorted(file for pattern in INPUTS for file in ROOT.glob(pattern)):
        total.update(f"\0{file}\0".encode() + file.read_bytes())
    return total.hexdigest()


def set_up() -> None:
    """Bring the environment up to date."""
    restore_settings()
    stamp, key, begin = VENV / "set-up.stamp", digest(), time.monotonic()
    if stamp.is_file() and stamp.read_text() == key and os.access(PYTHON, os.X_OK):
        return
    adjust_environment(VENV)
    check_tools()
    torch = kept_torch()
    version = torch.__version__ if torch else os.environ["EDT_TORCH"] or locked("torch")
    shutil.rmtree(LOGS, ignore_errors=True)
    with step(f"Environment in {VENV.name}"):
        make_venv(LOGS / "environment.log", torch)
        pins = export_pins(LOGS / "environment.log", VENV)
    with step(f"torch {version} of {sys.executable}" if torch else "torch, MPI and build tools"):
        group = ROOT / "pyproject.toml:build"
        install(LOGS / "torch.log", "--overrides", pins, "--group", group, f"torch=={version}")
    horovod_log, notes = LOGS / "horovod.log", []
    wait_for_horovod = start(horovod_log, PYTHON, ROOT / "tools" / "horovod_wheel.py")
    with step("Pinned packages"):
        install(log := LOGS / "packages.log", "--no-deps", "--requirement", pins)
        wanted, found = VENV / "torchvision.in", VENV / "torchvision.txt"
        wanted.write_text(f"torch=={version.partition('+')[0]}\n{TORCHVISION}\n")
        try:
            run(log, "uv", "pip", "compile", "--output-file", found, wanted)
            install(log, "--no-deps", "--constraints", found, "torchvision")  # it would bring another torch
        except SetUpError:
            notes.append(f"no torchvision for torch {version}: only some examples need it; see {log}")
    with step("Native kernels, edt_hvd and edt_launch"):
        install(LOGS / "edt.log", "--no-deps", "--no-build-isolation", "--config-settings",
                f"build-dir=build/{VENV.name}/{{wheel_tag}}", "--editable", ROOT)  # fmt: skip
    with step("Horovod (built the first time, since torch is there)"):
        wait_for_horovod()
    print(*(f"  {note}" for note in (*notes, horovod_log.read_text().splitlines()[-1])), sep="\n")
    stamp.write_text(key)
    print(f"Set up in {time.monotonic() - begin:.0f} s: {VENV.name}/bin/edt doctor shows what is there.")


if __name__ == "__main__":
    sys.exit(run_steps("set-up", set_up))
