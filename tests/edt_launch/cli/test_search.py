import json
import tarfile
from pathlib import Path

import pytest

from cli_service import SEARCH, CliService
from ended import Edt


def test_a_search_is_created_from_a_file_and_a_folder(
    edt: Edt, service: CliService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print()")
    (code / "search.json").write_text(json.dumps(SEARCH))
    monkeypatch.chdir(code)
    ended = edt("search", "create", "search.json")
    assert ended.code == 0
    (made,) = service.store.experiments.searches()
    assert (ended.out, made.name) == (f"{made.id}\n", "find-rate")
    with tarfile.open(service.settings.paths.search(made.id)) as sent:
        assert "train.py" in sent.getnames()


@pytest.mark.parametrize(
    "content, said",
    [
        (b"[1]", "is no JSON object"),
        (b"[" * 10**5, "is no JSON"),
        (b" " * 2**20 + b"{}", "has more than 1,048,576 bytes"),
    ],
)
def test_a_file_that_makes_no_sense_is_a_mistake(
    edt: Edt, service: CliService, tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "search.json"
    assert "cannot be read" in edt("search", "create", str(file)).err
    file.write_bytes(content)
    ended = edt("search", "create", str(file))
    assert ended.code == 2
    assert said in ended.err
    assert service.asked == []
