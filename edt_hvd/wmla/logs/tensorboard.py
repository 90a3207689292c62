"""TensorBoard events of a training, in ``$LOG_DIR/tb``."""

import os
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from edt_hvd.wmla.logs.result_log import Listener, by_name
from edt_hvd.wmla.results import MiniBatch


class TensorBoard(Listener):
    """Writes events. Needs ``tensorboard``, and says so once without it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._writer: Any = None

    @override
    def begin(self) -> None:
        if "LOG_DIR" not in os.environ:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            print(f"no TensorBoard events are written: {error}; pip install tensorboard")
        else:
            self._writer = SummaryWriter(os.path.join(os.environ["LOG_DIR"], "tb"))

    @override
    def train(self, means: MiniBatch, iteration: int, epoch: int, workers: int) -> None:
        self._write("train", by_name(means, self._names) | {"workers": workers}, iteration)

    @override
    def test(self, result: MiniBatch, iteration: int, epoch: int) -> None:
        self._write("test", by_name(result, self._names), iteration)

    @override
    def end(self, iteration: int, epochs: int) -> None:
        if self._writer is not None:
            self._writer.close()

    def _write(self, kind: str, values: dict[str, float], iteration: int) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(f"{kind}/{name}", value, iteration)
