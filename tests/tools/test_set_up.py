import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

import packages
import set_up
from packages import ROOT
from started import gone
from steps import SetUpError, run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log's place" / "step.log"


def test_a_failed_command_is_reported_with_its_last_lines(log: Path) -> None:
    says = "print('early'); print('cc1plus: error: out of memory'); [print(n) for n in range(50)]"
    with pytest.raises(SetUpError) as caught:
        run(log, sys.executable, "-c", f"{says}; raise SystemExit(3)")
    lines = str(caught.value).splitlines()
    assert {"  | cc1plus: error: out of memory", "  | 49"} <= set(lines)
    assert "  | early" not in lines
    assert lines[-1] == f"exit code 3; the whole log: {log}"


def test_a_terminated_set_up_leaves_no_process_behind(log: Path) -> None:
    code = (
        "import pathlib, sys; from steps import run, run_steps\n"
        "log, *command = sys.argv[1:]\n"
        "sys.exit(run_steps('set-up', lambda: run(pathlib.Path(log), *command)))"
    )
    child = "import subprocess as s; p = s.Popen(['sleep', '99'], process_group=0); print(p.pid); p.wait()"
    command = [sys.executable, "-c", code, log, sys.executable, "-u", "-c", child]
    steps = subprocess.Popen(command, cwd=ROOT / "tools")
    while not (log.exists() and log.read_text()):
        time.sleep(0.01)
    steps.terminate()
    assert steps.wait() == 130
    while not gone(int(log.read_text())):
        time.sleep(0.01)


def test_settings_of_pip_reach_uv_and_stray_variables_reach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stray = dict.fromkeys(["PYTHONPATH", "MAKEFLAGS", "PIP_TARGET", "CMAKE_GENERATOR"], "--stray")
    index = {"PIP_INDEX_URL": "https://index.invalid/simple"}
    monkeypatch.setattr(os, "environ", {**stray, **index, "SSL_CERT_FILE": "/own.pem"})
    packages.adjust_environment(Path("/venv"))
    assert os.environ["PIP_INDEX_URL"] == "https://index.invalid/simple"
    assert "--stray" not in os.environ.values()
    listing = (
        ":env:.index-url='https://index.invalid/simple'\n"
        "global.extra-index-url='https://a.invalid/simple\\nhttps://b.invalid/simple'\n"
        "install.find-links='/one /two'\nglobal.cert='/etc/ca.pem'\nglobal.timeout='60'\n"
    )
    assert packages.uv_settings(listing) == {
        "UV_DEFAULT_INDEX": "https://index.invalid/simple",
        "UV_INDEX": "https://a.invalid/simple https://b.invalid/simple",
        "UV_FIND_LINKS": "/one,/two",
    }


@pytest.mark.parametrize("change", ["a file of native/", "EDT_TORCH", "EDT_CUDA"])
def test_a_change_of_what_the_environment_depends_on_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    for setting in set_up.SETTINGS:
        monkeypatch.setenv(setting, "")
    kernel = tmp_path / "native" / "kernels" / "kernel.cpp"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("1")
    first = set_up.digest()
    assert set_up.digest() == first
    if change.startswith("EDT"):
        monkeypatch.setenv(change, "0")
    else:
        kernel.rename(kernel.with_name("renamed.cpp"))
    assert set_up.digest() != first


def test_a_torch_is_kept_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDT_TORCH", "present")
    monkeypatch.setitem(sys.modules, "torch", torch := ModuleType("torch"))
    assert set_up.kept_torch() is torch
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SetUpError, match=r"python.* has no torch: install one there, or name a version"):
        set_up.kept_torch()
    for version in ("", "2.8.0"):
        monkeypatch.setenv("EDT_TORCH", version)
        assert set_up.kept_torch() is None


def test_what_a_kept_torch_needs_is_found_with_it() -> None:
    assert {"torch", "sympy", "mpmath"} <= set_up.dependencies(["torch"], set())
    assert set_up.dependencies(["not-there[extra]>=1", "NumPy"], set()) == {"numpy"}
