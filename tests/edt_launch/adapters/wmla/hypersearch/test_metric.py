import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from edt_launch.adapters.wmla.hypersearch.searches import METRIC_FILE, MOST_METRICS, find_metric, read_metric
from edt_launch.service.experiment_spec import Objective


@pytest.mark.parametrize("objective, best", [(Objective.MINIMIZE, 0.5), (Objective.MAXIMIZE, 2.0)])
def test_the_best_value_counts(tmp_path: Path, objective: Objective, best: float) -> None:
    entries = [{"steps": 1, "loss": 2}, {"steps": 2, "loss": 0.5}, {"steps": 3, "loss": 0.75}, {"steps": 4}]
    (tmp_path / METRIC_FILE).write_text(json.dumps(entries))
    outcome = read_metric(tmp_path, "loss", objective)
    assert (outcome.metric, outcome.reason) == (best, "")


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "no JSON"),
        (b'[{"loss": 0.5}, {"lo', "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[" + b"9" * 5000 + b"]", "no JSON"),
        (b'{"loss": 0.5}', "no list"),
        (b"[1, null, []]", "the metric 'loss' is not in it"),
        (b'[{"accuracy": 1}]', "the metric 'loss' is not in it"),
        (b'[{"loss": NaN}, {"loss": "0,5"}, {"loss": true}, {"loss": 1e999}]', "no finite number"),
        (b'[{"loss": 1' + b"0" * 400 + b"}]", "no finite number"),
        (b" " * (MOST_METRICS + 1), "more than"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / METRIC_FILE).write_bytes(content)
    outcome = read_metric(tmp_path, "loss", Objective.MINIMIZE)
    assert outcome.metric is None
    assert said in outcome.reason
    assert METRIC_FILE in outcome.reason


def test_numbers_may_be_texts() -> None:
    content = b'[{"loss": "0.50"}, {"loss": "1e-1"}, {"loss": "none"}, {"loss": "nan"}, {"loss": ""}]'
    assert find_metric(content, "loss", Objective.MINIMIZE).metric == 0.1


def test_a_value_that_is_none_does_not_hide_the_others() -> None:
    outcome = find_metric(b'[{"loss": NaN}, {"loss": 0.5}, {"loss": -Infinity}]', "loss", Objective.MINIMIZE)
    assert outcome.metric == 0.5


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / METRIC_FILE
    assert "has not written" in read_metric(tmp_path, "loss", Objective.MINIMIZE).reason
    os.mkfifo(path)
    assert "no file" in read_metric(tmp_path, "loss", Objective.MINIMIZE).reason
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert "cannot be read" in read_metric(tmp_path, "loss", Objective.MINIMIZE).reason
    path.unlink()
    path.mkdir()
    assert "cannot be read" in read_metric(tmp_path, "loss", Objective.MINIMIZE).reason


@given(some.binary(max_size=200))
def test_nothing_that_is_in_it_is_a_catastrophe(content: bytes) -> None:
    outcome = find_metric(content, "loss", Objective.MAXIMIZE)
    assert (outcome.metric is None) == bool(outcome.reason)
