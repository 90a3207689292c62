from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_service import CliService
from quick_passwords import quick_passwords
from web_server import WebServer

__all__ = ["quick_passwords"]


@pytest.fixture(scope="session")
def web_server() -> Iterator[WebServer]:
    server = WebServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def service(web_server: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CliService]:
    """A service, which the environment names."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("EDT_HOME", "XDG_CONFIG_HOME", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "service").mkdir()
    web_server.app = one = CliService(tmp_path / "service", web_server.url, monkeypatch)
    yield one
    one.store.close()
