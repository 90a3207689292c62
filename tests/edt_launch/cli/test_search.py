import json
from pathlib import Path

import pytest

from ended import Edt
from fake_service import SEARCH, FakeService


def test_a_search_is_created_from_a_file_and_a_folder(
    edt: Edt, service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print()")
    (code / "search.json").write_text('{"metric": "loss", "job": {"command": ["train.py"]}}')
    monkeypatch.chdir(code)
    ended = edt("search", "create", "search.json")
    assert (ended.code, ended.out) == (0, "haaaaaaaa\n")
    asked = service.asked[-1]
    assert json.loads(asked.parts()["spec"])["metric"] == "loss"
    assert asked.files()["train.py"] == b"print()"


@pytest.mark.parametrize(
    "content, said",
    [
        (b"{", "is no JSON"),
        (b"[1]", "is no JSON object"),
        (b"[" * 10**5, "is no JSON"),
        (b" " * 2**20 + b"{}", "has more than 1,048,576 bytes"),
    ],
)
def test_a_file_that_makes_no_sense_is_a_mistake(
    edt: Edt, service: FakeService, tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "search.json"
    assert "cannot be read" in edt("search", "create", str(file)).err
    file.write_bytes(content)
    ended = edt("search", "create", str(file))
    assert ended.code == 2
    assert said in ended.err
    assert service.asked == []


def test_a_search_is_stopped_and_deleted(edt: Edt, service: FakeService) -> None:
    assert edt("search", "stop", "find-rate").err == "find-rate is being stopped\n"
    assert json.loads(edt("search", "stop", "find-rate", "--json").out) == SEARCH
    assert edt("search", "restart", "find-rate").err == "find-rate goes on\n"
    assert edt("search", "run-best", "find-rate").err == "jbbbbbbbb\n"
    assert json.loads(edt("search", "rm", "find-rate", "--json").out) == {"removed": "find-rate"}
    assert (service.asked[-1].method, service.asked[-1].path) == ("DELETE", "/searches/find-rate")
    ended = edt("search", "show", "nothing")
    assert "there is no search 'nothing'" in ended.err
    assert ended.code != 0
