import json
from pathlib import Path
from typing import Any

import pytest

from edt_launch.service.files.series_cache import SeriesCache


def line(step: int, **values: Any) -> str:
    event = {
        "event": "progress",
        "time": float(step),
        "step": step,
        "size": 1,
        "epoch": None,
        "values": values,
    }
    return json.dumps(event) + "\n"


def test_a_course_goes_on_from_where_it_was_read_to(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    cache = SeriesCache()
    assert cache.columns(path)["step"] == []
    path.write_text(line(1, loss=0.5) + line(2)[:10])
    assert cache.columns(path)["step"] == [1]
    with path.open("a") as file:
        file.write(line(2)[10:] + "nonsense\n" + line(3, loss=0.25))
    assert cache.columns(path)["loss"] == [0.5, None, 0.25]
    assert cache.columns(path, ["accuracy"])["values"]["accuracy"] == [None] * 3


@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_that_is_another_or_shorter_is_read_anew(tmp_path: Path, is_new: bool) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1) + line(2))
    cache = SeriesCache()
    assert cache.columns(path)["step"] == [1, 2]
    if is_new:
        (tmp_path / "new").write_text(line(5) + line(6) + line(7))
        (tmp_path / "new").rename(path)
    else:
        path.write_text(line(7))
    assert cache.columns(path)["step"][-1] == 7
    assert 1 not in cache.columns(path)["step"]
