import json
import os
from pathlib import Path

import pytest

from edt_launch.service.experiments.searches.trials import reported


def progress(**values: object) -> str:
    return json.dumps({"event": "progress", "time": 1.0, "step": 1, "epoch": 0, "size": 1, "values": values})


@pytest.mark.parametrize(
    "lines, expected",
    [
        ([progress(loss=3.0), progress(loss=0.5), progress(other=1)], 0.5),
        (["nonsense", "[" * 10**5, progress(loss=2), '{"event": "progress", "values": [1]}'], 2.0),
    ],
)
def test_the_last_value_counts(tmp_path: Path, lines: list[str], expected: float) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join([*lines, ""]))
    assert reported(tmp_path / "events.jsonl", "loss").metric == expected


@pytest.mark.parametrize(
    "lines, said",
    [
        ([], "was never reported"),
        (['{"event": "resumed", "values": {"loss": 1}, "is": "no progress"}'], "was never reported"),
        ([progress(loss=1), progress(loss=float("nan"))], "was last nan, no number of less than 1e300"),
        ([progress(loss="low")], "was last 'low'"),
        ([progress(loss=-1e301)], "was last -1e+301"),
    ],
)
def test_what_is_no_metric_is_told(tmp_path: Path, lines: list[str], said: str) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join([*lines, ""]))
    outcome = reported(tmp_path / "events.jsonl", "loss")
    assert outcome.metric is None
    assert said in outcome.reason


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    assert "cannot be read" in reported(tmp_path / "events.jsonl", "loss").reason
    os.mkfifo(tmp_path / "events.jsonl")
    assert "no file" in reported(tmp_path / "events.jsonl", "loss").reason
