"""Lines in ``$LOG_DIR/stdout``, which notebooks draw charts of."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from edt_hvd.wmla.logs.emetrics import log_folder


class ELog:
    """Appends lines to the log; a context manager. Accuracies are fractions.

    The names of the methods are those that programs use.
    """

    def __init__(self) -> None:
        self._file = (log_folder() / "stdout").open("a", encoding="utf-8")

    @classmethod
    def open(cls, subId: str | None = None) -> Self:  # noqa: N803 - the name programs use
        """Open the log of this process."""
        return cls()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def recordTrain(  # noqa: N802
        self, title: str, iteration: int, global_steps: int, *values: Any
    ) -> None:
        """A mini-batch: loss and accuracy, or metrics by name; a worker's number is left out."""
        loss, accuracy = _loss_and_accuracy(*values)
        self.recordText(
            f"{title},\tTimestamp: {_milliseconds()},\tGlobal steps: {global_steps},\tIteration: {iteration},"
            f"\tLoss: {loss:.5f},\tAccuracy: {accuracy:.5f}"
        )

    def recordTest(self, title: str, *values: Any) -> None:  # noqa: N802
        """A validation, with the same values."""
        loss, accuracy = _loss_and_accuracy(*values)
        self.recordText(
            f"{title},\tTimestamp: {_milliseconds()},\tLoss: {loss:.5f},\tAccuracy: {accuracy:.5f}"
        )

    def recordText(self, text: str) -> None:  # noqa: N802
        """A line of text, after the time."""
        self._file.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {text}\n")
        self._file.flush()

    def close(self) -> None:
        """Close the log; may be called again."""
        self._file.close()


def _loss_and_accuracy(first: Any, *rest: Any) -> tuple[float, float]:
    if isinstance(first, Mapping):
        return first["loss"], first.get("accuracy", first.get("acc", 0.0))
    return first, rest[0]


def _milliseconds() -> int:
    return int(time.time() * 1000)
