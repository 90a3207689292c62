"""The packages that ``make setup`` installs and ``make wheels`` collects: uv, its lock, and pip's indexes.

Standard library only: it runs before anything is installed.
"""

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

from steps import run

ROOT = Path(__file__).resolve().parent.parent
TORCHVISION = "torchvision>=0.21"  # each is for one torch; 0.21 was for 2.6
STRAY = (
    "CMAKE_GENERATOR", "CONDA_PREFIX", "MAKELEVEL", "MFLAGS", "PIP_PREFIX", "PIP_TARGET", "PYTHONHOME",
    "PYTHONPATH",
)  # fmt: skip
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}  # fmt: skip


def locked(package: str) -> str:
    """Return the version that uv.lock pins a package to."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    return next(str(one["version"]) for one in packages if one["name"] == package)


def adjust_environment(venv: Path) -> None:
    """Remove from the process's environment what would lead tools astray, and direct them to `venv`."""
    for name in STRAY:
        os.environ.pop(name, None)
    os.environ |= {
        "VIRTUAL_ENV": str(venv),
        "PATH": os.pathsep.join([str(venv / "bin"), os.environ.get("PATH", os.defpath)]),
        "MAKEFLAGS": f"-j{os.cpu_count() or 1}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_USER": "0",
        "PYTHONUNBUFFERED": "1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # all indexes are equal, as for pip
        "UV_LOCK_TIMEOUT": "3600",  # seconds; another environment of this checkout may be compiling
    }
    if wheels := os.environ.get("EDT_WHEELS"):
        found = Path(wheels).resolve().as_uri()
        os.environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": found}
        # As an index, the directory is empty.
        os.environ |= {"UV_OFFLINE": "1", "UV_FIND_LINKS": found, "UV_DEFAULT_INDEX": found, "UV_INDEX": ""}


def uv_settings(pip_config: str) -> dict[str, str]:
    """Translate what ``pip config list`` prints into uv's variables; uv's own settings win."""
    settings = {}
    for name, value in re.findall(r"^\S*?([a-z-]+)=('.*'|\".*\")$", pip_config, re.MULTILINE):
        if (variable := UV_NAMES.get(name)) and variable not in os.environ:
            separator = "," if name == "find-links" else " "
            settings[variable] = separator.join(ast.literal_eval(value).split())
    return settings


def export_pins(log: Path, venv: Path) -> Path:
    """Install uv into an environment, set to use pip's indexes, and return a file with what the lock pins.

    The file has the packages of all parts, less torch, what only torch needs, and Horovod.
    """
    python = venv / "bin" / "python"
    run(log, python, "-m", "pip", "install", f"uv=={locked('uv')}", f"pip=={locked('pip')}")
    command = (python, "-m", "pip", "config", "list")
    os.environ |= uv_settings(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    pins = venv / "pins.txt"
    run(
        log, "uv", "export", "--project", ROOT, "--quiet", "--frozen", "--no-header", "--no-hashes",
        "--no-annotate", "--no-emit-project", "--no-emit-package", "horovod", "--prune", "torch",
        "--all-extras", "--no-extra", "docs", "--group", "build", "--output-file", pins,
    )  # fmt: skip
    return pins
