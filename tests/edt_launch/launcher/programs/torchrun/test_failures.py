"""Error files of `@record`: what they say, and what is none of them."""

import json
from pathlib import Path

import pytest

from edt_launch.core.history.events import Failed
from edt_launch.launcher.programs.torchrun.failures import (
    NO_TRACEBACK,
    WorkerError,
    WorkerFailure,
    describe,
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


def test_a_file_that_is_not_there_or_half_written(tmp_path: Path) -> None:
    assert read(tmp_path / "none") is None
    (tmp_path / "half").write_text('{"message": {"mess')
    assert read(tmp_path / "half") is None


def test_failures_without_error_files() -> None:
    text = describe(
        "a.py",
        [
            WorkerFailure(Failed(1, "b", 0, None, 0, -9, "SIGKILL"), 0, None),
            WorkerFailure(Failed(2, "b", 1, None, 1, 3), 1, None),
        ],
    )
    before, _, root = text.partition("Root Cause")
    assert "traceback : Signal 9 (SIGKILL) received" in root
    assert NO_TRACEBACK in before
    assert describe("a.py", []) == ""
