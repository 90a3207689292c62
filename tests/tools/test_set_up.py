import subprocess
import sys
from pathlib import Path

import pytest

import horovod_wheel
import set_up
from horovod_wheel import Log, SetUpError, Torch

TORCH = Torch("2.13.0+cpu", None, "/base", ("numpy", "torch"))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log's place" / "step.log")


def test_a_failed_command_is_reported_with_its_last_lines(log: Log) -> None:
    says = "print('early'); print('cc1plus: error: out of memory'); [print(n) for n in range(50)]"
    with pytest.raises(SetUpError) as caught:
        log.run(sys.executable, "-c", f"{says}; raise SystemExit(3)", env=set_up.environment())
    lines = str(caught.value).splitlines()
    assert {"  | cc1plus: error: out of memory", "  | 49"} <= set(lines)
    assert "  | early" not in lines
    assert lines[-1] == f"exit code 3; the whole log: {log.path}"


def test_a_command_that_is_not_there_is_reported(log: Log) -> None:
    with pytest.raises(SetUpError, match="cannot run /nonexistent/cmake: No such file or directory"):
        log.run("/nonexistent/cmake", env={})


def test_settings_of_pip_reach_uv_and_stray_variables_reach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for stray in ("PYTHONPATH", "MAKEFLAGS", "PIP_TARGET", "CMAKE_GENERATOR"):
        monkeypatch.setenv(stray, "--stray")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    for name in set_up.UV_NAMES.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "/own.pem")
    variables = set_up.environment()
    assert variables["PIP_INDEX_URL"] == "https://index.invalid/simple"
    assert "--stray" not in variables.values()
    listing = (
        ":env:.index-url='https://index.invalid/simple'\n"
        "global.extra-index-url='https://a.invalid/simple\\nhttps://b.invalid/simple'\n"
        "install.find-links='/one /two'\nglobal.cert='/etc/ca.pem'\nglobal.timeout='60'\n"
    )
    assert set_up.uv_settings(listing) == {
        "UV_DEFAULT_INDEX": "https://index.invalid/simple",
        "UV_INDEX": "https://a.invalid/simple https://b.invalid/simple",
        "UV_FIND_LINKS": "/one,/two",
    }


def test_all_missing_tools_are_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(SetUpError, match=r"(?s)C\+\+ compiler.*apt install g\+\+.*make: .*apt install make"):
        set_up.check_tools()


@pytest.mark.parametrize("change", ["a file of native/", "EDT_TORCH", "EDT_CUDA"])
def test_a_change_of_what_the_environment_depends_on_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    for name in set_up.INPUTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).mkdir() if name == "native" else (tmp_path / name).touch()
    kernel = tmp_path / "native" / "kernel.cpp"
    kernel.write_text("1")
    first = set_up.digest()
    assert set_up.digest() == first
    if change.startswith("EDT"):
        monkeypatch.setenv(change, "0")
    else:
        kernel.rename(kernel.with_name("renamed.cpp"))
    assert set_up.digest() != first


def test_a_torch_is_kept_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Torch | None] = [TORCH, None]
    monkeypatch.setattr(set_up, "find_torch", lambda *_: found.pop(0))
    monkeypatch.setenv("EDT_TORCH", "present")
    assert set_up.kept_torch("/base/python") is TORCH
    with pytest.raises(SetUpError, match="/base/python has no torch: install one there, or name a version"):
        set_up.kept_torch("/base/python")
    monkeypatch.setenv("EDT_TORCH", "2.8.0")
    assert set_up.kept_torch("/base/python") is None


def test_what_a_kept_torch_needs_is_found_with_it() -> None:
    torch = horovod_wheel.find_torch(sys.executable, set_up.environment())
    assert torch is not None
    assert {"torch", "sympy", "numpy"} <= set(torch.closure)


def test_a_cached_wheel_that_does_not_install_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    """The archive is whole, but was built wrongly, or for another machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    good, rubbish = (tmp_path / f"horovod-0.28.1-{name}.whl" for name in ("good", "rubbish"))
    for wheel in (good, rubbish):
        subprocess.run([sys.executable, "-m", "zipfile", "-c", wheel, __file__], check=True)
    monkeypatch.setattr(horovod_wheel, "build", lambda *_arguments: good)
    monkeypatch.setattr(Log, "run", lambda *_arguments, **_keywords: None)
    installed: list[str] = []

    class FakeInstaller(set_up.Installer):
        def __init__(self) -> None: ...

        def __call__(self, _log: Log, *arguments: str | Path, command: str = "install") -> None:
            installed.append(Path(arguments[-1]).name)
            if installed[-1] == rubbish.name:
                raise SetUpError("not a wheel")

    entry = horovod_wheel.cache_entry(TORCH, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    horovod_wheel.keep(rubbish, entry)
    assert set_up.install_horovod(log, FakeInstaller(), TORCH) == f"kept in {entry}"
    assert set_up.install_horovod(log, FakeInstaller(), TORCH) == f"reused {entry / good.name}"
    assert installed == [rubbish.name, good.name, good.name]
