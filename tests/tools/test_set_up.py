import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import set_up
from horovod_wheel import SetUpError, WheelCache
from set_up import Shell, Torch


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell("A step", tmp_path / "log's place" / "1-step.log")


def test_a_failed_command_is_told_with_its_last_words(shell: Shell) -> None:
    says = "print('early'); print('cc1plus: error: out of memory'); [print(n) for n in range(50)]"
    code = f"{says}; raise SystemExit(3)"
    with pytest.raises(SetUpError) as caught:
        shell(sys.executable, "-c", code, env=set_up.environment())
    message = str(caught.value)
    assert "out of memory" in message
    assert "| 49\n" in message
    assert "early\n" not in message.replace(code, "")
    assert message.endswith(f"exit code 3; the whole log: {shell.log}")


def test_a_command_that_is_not_there_is_told(shell: Shell) -> None:
    with pytest.raises(SetUpError, match="cannot run /nonexistent/cmake: No such file or directory"):
        shell("/nonexistent/cmake", env={})


def test_output_goes_to_the_log_and_not_to_the_terminal(
    shell: Shell, capfd: pytest.CaptureFixture[str]
) -> None:
    shell(sys.executable, "-c", "print('word')", env=set_up.environment())
    shell.done()
    assert "word\n" in shell.log.read_text()
    assert "word" not in capfd.readouterr().out


def test_pips_settings_reach_pip_and_stray_variables_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    for stray in ("PYTHONPATH", "MAKEFLAGS", "PIP_TARGET", "CMAKE_GENERATOR"):
        monkeypatch.setenv(stray, "--stray")
    variables = set_up.environment()
    assert (variables["PIP_INDEX_URL"], variables["PIP_FIND_LINKS"]) == (
        "https://index.invalid/simple",
        "/wheels",
    )
    assert "--stray" not in variables.values()


def test_a_step_is_stale_when_a_file_or_a_step_before_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    sources, file = tmp_path / "native", tmp_path / "native" / "kernel.cpp"
    sources.mkdir()
    file.write_text("1")
    first = set_up.digest("before", (sources,))
    assert set_up.digest("before", (sources,)) == first
    assert set_up.digest("other", (sources,)) != first
    file.rename(sources / "renamed.cpp")
    assert set_up.digest("before", (sources,)) != first


def test_everything_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(SetUpError, match=r"(?s)C\+\+ compiler.*apt install g\+\+.*make: .*apt install make"):
        set_up.check_tools()


def test_a_cached_wheel_that_does_not_install_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    """The digest is right, the wheel is rubbish: one built wrongly, or for another machine."""
    wheels = tmp_path / "cache" / "edt" / "wheels"
    good, commands = tmp_path / "horovod-0.28.1-good.whl", []
    good.write_bytes(b"good")

    class FakeShell(Shell):
        def __call__(self, *command: str | Path, env: Mapping[str, str]) -> None:
            commands.append(command)
            if str(command[-1]).endswith("rubbish.whl"):
                raise SetUpError("not a wheel")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(set_up, "probe_torch", lambda _python: Torch("2.13.0+cpu", None, tmp_path))
    monkeypatch.setattr(set_up, "build", lambda *_arguments: good)
    monkeypatch.setattr(set_up, "machine_has_gpu", lambda: False)
    rubbish = tmp_path / "rubbish.whl"
    rubbish.write_bytes(b"rubbish")
    key = set_up.recipe(set_up.ROOT, torch="2.13.0+cpu", cuda=None).key
    WheelCache(wheels).keep(key, rubbish)

    set_up.install_horovod(FakeShell("Horovod", shell.log))
    found = WheelCache(wheels).find(key)
    assert found is not None
    assert hashlib.sha256(found.read_bytes()).digest() == hashlib.sha256(b"good").digest()

    commands.clear()
    set_up.install_horovod(FakeShell("Horovod", shell.log))
    assert [command[-1] for command in commands] == [found, "import horovod.torch"]
