from typing import Any

import pytest

from edt_hvd.wmla.logs import figure
from edt_hvd.wmla.results import MiniBatch


class Screen:
    """What a notebook shows."""

    def __init__(self) -> None:
        self.images: list[Any] = []

    def display(self, image: Any, display_id: bool = False) -> "Screen":
        self.images.append(image)
        return self

    update = display


def test_two_panels_refreshed_every_50_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("IPython.display.display", screen.display)
    drawn = figure.Figure()
    drawn.begin()
    for iteration in range(1, 120):
        drawn.train(MiniBatch(4, 1 / iteration, 0.0), iteration, 0, 1 + iteration // 60)
    drawn.test(MiniBatch(4, 0.5, 0.0), 119, 0)
    drawn.end(119, 1)
    assert len(screen.images) == 3
    assert all(image.data.startswith(b"\x89PNG") for image in screen.images)
    losses, speed, workers = drawn.figure().axes
    assert [line.get_label() for line in losses.lines] == ["train loss", "test loss"]
    assert len(speed.lines[0].get_xdata()) == 119
    assert workers.get_ylabel() == "number of GPUs"
