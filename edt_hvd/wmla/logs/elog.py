"""Lines in ``$LOG_DIR/stdout``, which notebooks draw charts of."""

import time
from collections.abc import Mapping
from typing import Any

from edt_hvd.wmla.logs.emetrics import AppendedFile


class ELog(AppendedFile):
    """Appends lines to the log; a context manager. Accuracies are fractions.

    The names of the methods are those that programs use.
    """

    _NAME = "stdout"

    def recordTrain(  # noqa: N802
        self, title: str, iteration: int, global_steps: int, *values: Any
    ) -> None:
        """A mini-batch: loss and accuracy, or metrics by name; a worker's number is left out."""
        self._record(title, f"\tGlobal steps: {global_steps},\tIteration: {iteration},", values)

    def recordTest(self, title: str, *values: Any) -> None:  # noqa: N802
        """A validation, with the same values."""
        self._record(title, "", values)

    def _record(self, title: str, steps: str, values: tuple[Any, ...]) -> None:
        now = int(time.time() * 1000)
        loss, accuracy = _loss_and_accuracy(*values)
        self.recordText(f"{title},\tTimestamp: {now},{steps}\tLoss: {loss:.5f},\tAccuracy: {accuracy:.5f}")

    def recordText(self, text: str) -> None:  # noqa: N802
        """A line of text, after the time."""
        self._write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {text}")


def _loss_and_accuracy(first: Any, *rest: Any) -> tuple[float, float]:
    if isinstance(first, Mapping):
        return first["loss"], first.get("accuracy", first.get("acc", 0.0))
    return first, rest[0]
