"""The writer in the background, and how often it may write."""

import threading
from pathlib import Path

import pytest
import torch

from edt_hvd.state.checkpoint import storage
from edt_hvd.state.checkpoint.storage import Cancelled, Content
from edt_hvd.state.checkpoint.writer import Cost, Failed, Outcome, Writer, Written, next_at


def content(commits: int = 3) -> Content:
    return Content(commits, {"weight": torch.ones(10)}, {}, {"steps": commits})


@pytest.mark.parametrize(
    "cost, expected",
    [(None, 110.0), (Cost(0.1, 0.01), 110.0), (Cost(1.0, 0.01), 120.0), (Cost(1.0, 0.5), 200.0)],
)
def test_the_next_one_waits_for_the_interval_and_for_what_the_last_has_cost(
    cost: Cost | None, expected: float
) -> None:
    assert next_at(100.0, 10.0, cost) == pytest.approx(expected)


def made(folder: Path, takes_processor: bool = True) -> tuple[Writer, list[Outcome]]:
    reported: list[Outcome] = []
    return Writer(folder, 2, takes_processor, reported.append), reported


def test_it_writes_and_keeps_the_last(tmp_path: Path) -> None:
    writer, reported = made(tmp_path)
    for commits in (1, 2, 3):
        writer.begin(content(commits))
        writer.wait()
        outcome = writer.take_outcome()
        assert isinstance(outcome, Written)
        assert outcome.cost.seconds >= outcome.cost.processor > 0
        assert (outcome.content.commits, outcome.path.name) == (commits, f"step-0000000{commits}")
        assert outcome.bytes == (outcome.path / "state.pt").stat().st_size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000002", "step-00000003"]
    assert [type(outcome) for outcome in reported] == [Written] * 3
    assert writer.take_outcome() is None


def test_errors_of_any_kind_are_told(tmp_path: Path) -> None:
    shared = torch.zeros(8, dtype=torch.uint8)
    writer, reported = made(tmp_path)
    writer.begin(Content(1, {"a": shared, "b": shared.view(torch.float32)}, {}, {"steps": 1}))
    writer.wait()
    (outcome,) = reported
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("RuntimeError: Cannot save multiple tensors or storages")
    assert writer.take_outcome() == outcome
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_cancelled_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def write(folder: Path, content: Content, cancelled: threading.Event) -> None:
        begun.set()
        cancelled.wait()
        raise Cancelled

    monkeypatch.setattr(storage, "write", write)
    writer, reported = made(tmp_path)
    writer.begin(content())
    begun.wait()
    assert writer.busy
    assert writer.take_outcome() is None
    writer.cancel()
    writer.wait()
    assert reported == []
