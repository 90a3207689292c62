import json
import re
import webbrowser

import pytest

from cli_service import CliService
from ended import Edt


def test_it_opens_the_browser_and_prints_the_link(
    edt: Edt, service: CliService, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda link: opened.append(link) or True)
    monkeypatch.setenv("DISPLAY", ":7")
    (link,) = edt("ui").out.splitlines()
    assert re.fullmatch(rf"{service.url}/logon\?once=edt_[\w-]+", link)
    assert opened == [link]
    assert "open this" in edt("ui", "--print").err
    assert json.loads(edt("ui", "--json").out)["url"].startswith(f"{service.url}/logon?once=")
    assert opened == [link]
