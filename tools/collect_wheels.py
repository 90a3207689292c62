"""Collect in a directory all that ``make setup`` fetches, for a machine without network.

``make wheels DIR=...`` runs this. The other machine may have another Python and another processor than this
one. With ``EDT_TORCH=present`` it uses a torch of its own, and neither torch nor torchvision is collected.
Standard library only.
"""

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

from packages import ROOT, TORCHVISION, adjust_environment, export_pins, locked
from steps import run, run_steps, step


def platforms(machine: str) -> list[str]:
    """Return pip's names of the platforms whose wheels run on Linux with glibc 2.28, the best first."""
    names = [f"manylinux_2_{minor}" for minor in range(28, 4, -1)] + [
        "manylinux2014",
        "manylinux2010",
        "manylinux1",
        "linux",
    ]
    return [f"{name}_{machine}" for name in names]


def collect(directory: Path, python: str, machine: str) -> None:
    """Fill the directory.

    Raises:
        SetUpError: Something cannot be had for that Python and machine.
    """
    torch = os.environ.get("EDT_TORCH") or locked("torch")
    directory.mkdir(parents=True, exist_ok=True)
    log = ROOT / "build" / "log" / "wheels.log"
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="edt-wheels-") as scratch:
        venv, wanted, everything = (
            Path(scratch) / "venv",
            Path(scratch) / "torch.txt",
            Path(scratch) / "all.txt",
        )
        adjust_environment(venv)
        with step(f"What the lock pins, for Python {python} on {machine}"):
            run(log, sys.executable, "-m", "venv", venv)
            pins = export_pins(log, venv)
            present = torch == "present"
            wanted.write_text("torch" if present else f"torch=={torch}\n{TORCHVISION}\n")
            run(
                log, "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--overrides", pins,
                "--python-version", python, "--python-platform", f"{machine}-manylinux_2_28",
                "--output-file", everything, pins, *(("--excludes", wanted) if present else (wanted,)),
            )  # fmt: skip
        download = (venv / "bin/pip", "download", "--no-deps", "--dest", directory.resolve())
        targets = (word for name in platforms(machine) for word in ("--platform", name))
        with step("Wheels"):
            run(
                log, *download, "--python-version", python, "--implementation", "cp", *targets,
                "--requirement", everything,
            )  # fmt: skip
        with step("Horovod's sources"):
            run(log, *download, "--no-binary", ":all:", f"horovod=={locked('horovod')}")
    files = list(directory.iterdir())
    size = sum(file.stat().st_size for file in files) / 2**20
    print(f"{len(files)} files, {size:.0f} MiB: on the other machine, make setup WHEELS={directory}")


def main() -> int:
    """Collect what the arguments say."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--python", default=version, help=f"Python of the other machine (default: {version})")
    parser.add_argument(
        "--machine", default=platform.machine(), help="its processor, as `uname -m` prints it"
    )
    options = parser.parse_args()
    return run_steps("make wheels", lambda: collect(options.directory, options.python, options.machine))


if __name__ == "__main__":
    sys.exit(main())
