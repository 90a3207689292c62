import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_launch import cli
from ended import Edt, Ended
from fake_service import TOKEN, FakeService, Server


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeService]:
    """A service, which the environment names."""
    fake = FakeService()
    server = Server(fake)
    monkeypatch.setenv("EDT_URL", fake.url)
    monkeypatch.setenv("EDT_TOKEN", TOKEN)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("EDT_HOME", "XDG_CONFIG_HOME", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield fake
    server.stop()


@pytest.fixture
def edt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Edt:
    """Run the command line in this process."""

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["edt", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        written = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ended(int(code), written.out, written.err)

    return run
