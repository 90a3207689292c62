"""Commands against the service's own application, without sockets."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from databases import sqlite_at
from edt_launch.cli import session
from edt_launch.cli.client.configuration import Configuration
from edt_launch.cli.client.transport import problem
from world import World


class AppHttp:
    """`transport.Http` over the application, as the user whose token is configured."""

    world: ClassVar[World]

    def __init__(self, configuration: Configuration, _timeout: float) -> None:
        self._configuration = configuration
        self._client = self.world.client(configuration.token or "")

    def send(self, method: str, path: str, **given: Any) -> SimpleNamespace:
        """The query, and JSON as `content` or a `body` of another kind."""
        query = {name: value for name, value in (given.get("query") or {}).items() if value is not None}
        headers = dict(given.get("headers") or {})
        sent: dict[str, Any] = {"json": given.get("content")}
        if (body := given.get("body")) is not None:
            written = io.BytesIO()
            body.write_to(written)
            headers["Content-Type"] = body.content_type
            sent = {"content": written.getvalue()}
        answer = self._client.request(method, path, params=query, headers=headers, **sent)
        if answer.status_code >= 300:
            kind = answer.headers["content-type"].partition(";")[0]
            raise problem(answer.status_code, kind, answer.content, self._configuration)
        return SimpleNamespace(
            json=lambda: json.loads(answer.content or b"null"), blocks=lambda: iter([answer.content])
        )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path / "home", sqlite_at(tmp_path / "edt.db"))
    monkeypatch.setattr(AppHttp, "world", world, raising=False)
    monkeypatch.setattr(session, "Http", AppHttp)
    monkeypatch.setenv("EDT_URL", "http://edt.test")
    monkeypatch.setenv("EDT_TOKEN", world.tokens["ann"])
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print()")
    monkeypatch.chdir(code)
    return world
