import io
import json
from typing import Any

import pytest

from edt_launch.adapters.wmla.submission import request
from edt_launch.adapters.wmla.submission.args import ArgumentsError
from edt_launch.adapters.wmla.submission.request import (
    NAME_LIMIT,
    ExecRequest,
    FormPart,
    beside,
    read,
    with_names,
)
from edt_launch.service.errors import InvalidError, TooLargeError
from world import tar


def data(**content: Any) -> str:
    return json.dumps(content)


def test_newer_clients_put_everything_into_data() -> None:
    nodes = {"num_nodes": 2, "mem": {"size": "4g"}, "gpu": {"num_gpu": 3}, "cpu": {"units": 1}}
    sources = [{"type": "fs", "location": {"paths": "a/b"}}]
    given = data(args="--lr 1 ", hardwareSpec={"nodes": nodes}, dataSource=sources)
    args, found = read(ExecRequest("", data=given))
    assert args == "--lr 1 "
    assert (found.workers, found.devices, found.data_path, found.script) == (2, 3, "a/b", ("--lr", "1"))


def test_the_argument_string_comes_first() -> None:
    nodes, sources = {"nodes": {"num_nodes": 2}}, [{"location": {"paths": ["x"]}}]
    given = data(args="--numWorker 9", hardwareSpec=nodes, dataSource=sources)
    request = ExecRequest("--numWorker 4 --cs-datastore-meta data_path=mine", data=given)
    args, found = read(request)
    assert args == request.args
    assert (found.workers, found.data_path, found.script) == (4, "mine", ())


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"hardwareSpec": {"nodes": []}, "dataSource": 3}',
        '{"dataSource": [{"type": "connection_asset"}]}',
    ],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ArgumentsError):
        read(ExecRequest("", data=text))


def part(name: str, content: bytes = b"") -> FormPart:
    return FormPart(name, io.BytesIO(content))


ZIP = b"PK\x03\x04"


@pytest.mark.parametrize(
    "content, main, expected",
    [
        (tar({"a": b"b"}), "", "model.tar"),
        (ZIP, "main.py", "model.tar"),
        (b"import sys", "sub/train.py", "train.py"),
    ],
    ids=["tar.gz", "zip", "script"],
)
def test_names_that_are_not_there_follow_from_content_and_arguments(
    content: bytes, main: str, expected: str
) -> None:
    assert [one.name for one in with_names([part("", content), part("a b")], main)] == [expected, "a b"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/etc/passwd", "a\0", "\udc80", "x" * (NAME_LIMIT + 1), "é" * 101]
)
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidError, match="has a name that no file can have"):
        beside([part(name)], None)


@pytest.mark.parametrize("names", [("main.py", "a", "a"), ("main.py", "main.py")])
def test_no_file_takes_the_place_of_another(names: tuple[str, ...]) -> None:
    sent = [part(name) for name in names]
    with pytest.raises(InvalidError, match="two files are called"):
        beside(sent, sent[0])


def test_together_they_have_a_limit_which_is_not_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "LARGEST", 5)
    model = part("m.tar", b"x" * 9)
    assert beside([model, part("a", b"123"), part("b", b"45")], model) == {"a": b"123", "b": b"45"}
    with pytest.raises(TooLargeError, match="more than 5 bytes"):
        beside([model, part("a", b"123"), part("b", b"456")], model)
