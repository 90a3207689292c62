"""The lines that engines for WMLA print, which people are used to; nothing reads them."""

import time
from collections.abc import Callable

from typing_extensions import override

from edt_hvd.wmla.logs.result_log import Listener
from edt_hvd.wmla.results import MiniBatch

Print = Callable[[str], None]


def _print(line: str) -> None:
    print(line, flush=True)


class Console(Listener):
    """Prints the means of a training."""

    def __init__(self, out: Print = _print) -> None:
        self._out = out
        self._began = time.monotonic()

    @override
    def begin(self) -> None:
        self._began = time.monotonic()
        self._out("--------START TRAINING--------")

    @override
    def train(self, means: MiniBatch, iteration: int, epoch: int, workers: int) -> None:
        self._out(f"Timestamp {int(time.time() * 1000)}, Iteration {iteration}")
        self._out(f"batches :{iteration} {means.loss}")
        self._print_values("train", means, iteration)

    @override
    def test(self, result: MiniBatch, iteration: int, epoch: int) -> None:
        self._print_values("test", result, iteration)

    @override
    def end(self, iteration: int, epochs: int) -> None:
        self._out(f"--------END TRAINING: completed {iteration} iterations --------")
        seconds = time.monotonic() - self._began
        self._out(f"--------END TRAINING: completed epoch {epochs} in time {seconds:.3f} --------")

    def _print_values(self, kind: str, values: MiniBatch, iteration: int) -> None:
        accuracy = values.accuracy / 100
        self._out(f"Iteration {iteration}: tag {kind}_accuracy, simple_value {accuracy}")
        self._out(f"Iteration {iteration}: tag {kind}_loss, simple_value {values.loss}")
