"""The live figure of a training in a notebook: losses, and how fast it goes on how many GPUs."""

import io
import sys
import time
from typing import Any

from typing_extensions import override

from edt_hvd.wmla.logs.result_log import Listener
from edt_hvd.wmla.results import MiniBatch

REFRESH = 50
"""Mini-batches from one drawing to the next."""


def kernel_shell() -> Any:
    """IPython's shell, if this process is the kernel of a notebook; else None."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell if hasattr(shell, "kernel") else None


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel, with matplotlib."""
    if kernel_shell() is None:
        return False
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


class Figure(Listener):
    """Draws the figure, again after every `REFRESH` mini-batches."""

    def __init__(self) -> None:
        self._train: list[tuple[int, float]] = []
        self._test: list[tuple[int, float]] = []
        self._speed: list[tuple[int, float]] = []
        self._workers: list[tuple[int, int]] = []
        self._began = time.monotonic()
        self._shown: Any = None

    @override
    def begin(self) -> None:
        self._began = time.monotonic()

    @override
    def train(self, means: MiniBatch, iteration: int, epoch: int, workers: int) -> None:
        self._train.append((iteration, means.loss))
        self._speed.append((iteration, len(self._train) / max(time.monotonic() - self._began, 1e-9)))
        self._workers.append((iteration, workers))
        if len(self._train) % REFRESH == 0:
            self._draw()

    @override
    def test(self, result: MiniBatch, iteration: int, epoch: int) -> None:
        self._test.append((iteration, result.loss))

    @override
    def end(self, iteration: int, epochs: int) -> None:
        self._draw()

    def figure(self) -> Any:
        """The two panels, as a figure of matplotlib."""
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas(figsize=(11, 4), layout="constrained")
        losses, speed = canvas.subplots(1, 2)
        for values, name in ((self._train, "train loss"), (self._test, "test loss")):
            if values:
                losses.plot(
                    *zip(*values, strict=True), label=name, marker="o" if values is self._test else None
                )
        losses.set(xlabel="steps", ylabel="loss")
        losses.legend()
        if self._speed:
            speed.plot(*zip(*self._speed, strict=True), color="C2", label="average steps/s")
            workers = speed.twinx()
            workers.step(*zip(*self._workers, strict=True), color="C3", where="post")
            workers.set(ylabel="number of GPUs")
            workers.yaxis.label.set_color("C3")
        speed.set(xlabel="steps", ylabel="average steps/s")
        speed.yaxis.label.set_color("C2")
        return canvas

    def _draw(self) -> None:
        from IPython.display import Image, display

        drawn = io.BytesIO()
        self.figure().savefig(drawn, format="png")
        image = Image(drawn.getvalue())  # type: ignore[no-untyped-call]
        if self._shown is None:
            self._shown = display(image, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(image)
