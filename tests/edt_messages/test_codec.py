"""Messages and their lines, which are what installed versions send: a change of one breaks them."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from edt_messages import forking, messages, wmla

LINES = [
    (module, line)
    for module in (messages, forking, wmla)
    for name in [module.__name__.rpartition(".")[2]]
    for line in (Path(__file__).parent / "lines" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
]


@pytest.mark.parametrize("module, line", LINES)
def test_a_message_is_its_line(module: ModuleType, line: bytes) -> None:
    message, content = module.decode(line), json.loads(line)
    assert module.encode(message) == line
    assert (
        module.decode(json.dumps(content | {"later": [1]}).encode()) == message
    )  # a field of a later version
    assert module._codec.type_of(message) == content["type"]


def test_there_is_a_line_of_every_message() -> None:
    found = {(module, json.loads(line)["type"]) for module, line in LINES}
    assert found == {
        (module, name) for module in (messages, forking, wmla) for name in module._codec._readers
    }
