"""Error files of `@record`: what they say, and what is none of them."""

import json
from pathlib import Path

import pytest

from edt_launch.launcher.programs.torchrun.failures import (
    WorkerError,
    read,
)


@pytest.mark.parametrize(
    "content, error",
    [
        ({"message": "text", "timestamp": "7"}, WorkerError("text", 7)),
        ({"message": {"message": "m", "extraInfo": {"timestamp": 5}}}, WorkerError("m", 5)),
        (
            {"message": {"message": "m", "extraInfo": {"py_callstack": "at", "timestamp": "5"}}},
            WorkerError("at", 5),
        ),
        ({"message": 3}, None),
        ([], None),
    ],
)
def test_error_files(tmp_path: Path, content: object, error: WorkerError | None) -> None:
    path = tmp_path / "error.json"
    path.write_text(json.dumps(content))
    assert read(path) == error
