import sys
from pathlib import Path

import pytest

from edt_hvd.wmla.logs.tensorboard import TensorBoard
from edt_hvd.wmla.results import MiniBatch


def test_without_the_package_one_line_says_so(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    board = TensorBoard(["f1"])
    board.begin()
    board.train(MiniBatch(4, 2.5, 12.5, (0.25,)), 1, 0, 3)
    board.end(1, 1)
    assert capsys.readouterr().out.count("no TensorBoard events are written") == 1
