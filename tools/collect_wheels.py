"""Collect in a directory all that ``make setup`` fetches, for a machine without network.

``make wheels DIR=...`` runs this. The other machine may have another Python and another processor than this
one. With ``EDT_TORCH=present`` it uses a torch of its own, and neither torch nor torchvision is collected.
Standard library only.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from horovod_wheel import ROOT, TORCHVISION, Log, SetUpError, locked
from set_up import environment, export_pins, uv_settings


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
    log = Log(ROOT / "build" / "log" / "wheels.log")
    with tempfile.TemporaryDirectory(prefix="edt-wheels-") as scratch:
        venv, pins, everything = Path(scratch) / "venv", Path(scratch) / "pins.txt", Path(scratch) / "all.txt"
        log.run(sys.executable, "-m", "venv", venv, env=environment())
        log.run(
            venv / "bin/pip", "install", f"uv=={locked('uv')}", f"pip=={locked('pip')}", env=environment()
        )
        listing = subprocess.run(
            [venv / "bin/pip", "config", "list"], capture_output=True, text=True, check=True
        ).stdout
        env = environment() | uv_settings(listing) | {"VIRTUAL_ENV": str(venv)}
        export_pins(log, venv, pins, env)
        wanted = Path(scratch) / "torch.txt"
        wanted.write_text("" if torch == "present" else f"torch=={torch}\n{TORCHVISION}\n")
        log.run(
            venv / "bin/uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-version",
            python, "--python-platform", f"{machine}-manylinux_2_28", "--overrides", pins,
            "--output-file", everything, pins, wanted, env=env,
        )  # fmt: skip
        download = (venv / "bin/pip", "download", "--no-deps", "--dest", directory.resolve())
        targets = (word for name in platforms(machine) for word in ("--platform", name))
        log.run(
            *download,
            "--python-version",
            python,
            "--implementation",
            "cp",
            *targets,
            "--requirement",
            everything,
            env=env,
        )
        log.run(*download, "--no-binary", ":all:", f"horovod=={locked('horovod')}", env=env)


def main() -> int:
    """Collect; report a failure in words."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--python", default=version, help=f"Python of the other machine (default: {version})")
    parser.add_argument(
        "--machine", default=platform.machine(), help="its processor, as `uname -m` prints it"
    )
    options = parser.parse_args()
    try:
        collect(options.directory, options.python, options.machine)
    except SetUpError as error:
        print(f"not all could be collected: {error}", file=sys.stderr)
        return 1
    files = list(options.directory.iterdir())
    size = sum(file.stat().st_size for file in files) / 2**20
    print(f"{len(files)} files, {size:.0f} MiB: on the other machine, make setup WHEELS={options.directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
