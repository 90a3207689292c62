import sys
from pathlib import Path

import pytest

from edt_hvd.wmla.logs.tensorboard import TensorBoard
from edt_hvd.wmla.results import MiniBatch


def written(board: TensorBoard) -> None:
    board.begin()
    board.train(MiniBatch(4, 2.5, 12.5, (0.25,)), 1, 0, 3)
    board.test(MiniBatch(4, 1.5, 50.0, (0.5,)), 1, 0)
    board.end(1, 1)


def test_events(job: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    written(TensorBoard(["f1"]))
    events = EventAccumulator(str(job / "log" / "tb")).Reload()
    assert set(events.Tags()["scalars"]) == {
        *("train/loss", "train/accuracy", "train/f1", "train/workers"),
        *("test/loss", "test/accuracy", "test/f1"),
    }
    (event,) = events.Scalars("train/workers")
    assert (event.step, event.value) == (1, 3.0)


def test_without_the_package_one_line_says_so(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    written(TensorBoard(["f1"]))
    assert capsys.readouterr().out.count("no TensorBoard events are written") == 1


def test_without_a_log_folder_there_is_nothing(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOG_DIR")
    written(TensorBoard(["f1"]))
    assert not list((job / "log").iterdir())
