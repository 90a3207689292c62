import json
import webbrowser

import pytest

from ended import Edt
from fake_service import FakeService


def test_it_opens_the_browser_and_prints_the_link(
    edt: Edt, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_(link: str) -> bool:
        opened.append(link)
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    monkeypatch.setenv("DISPLAY", ":7")
    link = f"{service.url}/logon?once=edt_once"
    assert edt("ui").out == f"{link}\n"
    assert opened == [link]
    assert "open this" in edt("ui", "--print").err
    assert json.loads(edt("ui", "--json").out)["url"] == link
    assert opened == [link]
