from collections.abc import Iterator
from pathlib import Path

import pytest

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
