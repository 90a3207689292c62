"""TensorBoard events of a training, in ``$LOG_DIR/tb``."""

import os
from collections.abc import Sequence
from typing import Any

from edt_hvd.wmla.logs.result_log import by_name
from edt_hvd.wmla.results import MiniBatch


class TensorBoard:
    """Writes events; a `result_log.Listener`. Needs ``tensorboard``, and says so once without it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._writer: Any = None

    def begin(self) -> None:
        """As in `Listener`."""
        if "LOG_DIR" not in os.environ:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            print(f"no TensorBoard events are written: {error}; pip install tensorboard")
        else:
            self._writer = SummaryWriter(os.path.join(os.environ["LOG_DIR"], "tb"))

    def train(self, means: MiniBatch, iteration: int, epoch: int, workers: int) -> None:
        """As in `Listener`."""
        self._write("train", by_name(means, self._names) | {"workers": workers}, iteration)

    def test(self, result: MiniBatch, iteration: int, epoch: int) -> None:
        """As in `Listener`."""
        self._write("test", by_name(result, self._names), iteration)

    def end(self, iteration: int, epochs: int) -> None:
        """As in `Listener`."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, kind: str, values: dict[str, float], iteration: int) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(f"{kind}/{name}", value, iteration)
