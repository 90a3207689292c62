"""Metrics as lines of JSON in ``$LOG_DIR/evaluation-metrics.txt``, as programs for WMLA record them."""

import itertools
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from typing_extensions import override


def log_folder() -> Path:
    """Where a process writes its metrics: ``LOG_DIR``, else ``JOB_STATE_DIR/logs``, else ``/tmp``; made."""
    if "LOG_DIR" in os.environ:
        folder = Path(os.environ["LOG_DIR"])
    elif "JOB_STATE_DIR" in os.environ:
        folder = Path(os.environ["JOB_STATE_DIR"], "logs")
    else:
        folder = Path("/tmp")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class AppendedFile:
    """A file in `log_folder` that lines are appended to; a context manager.

    Args:
        sub_id: of one experiment among several.
    """

    _NAME: ClassVar[str]

    def __init__(self, sub_id: str | None = None) -> None:
        self._sub_id = sub_id
        self._file = (log_folder() / self._NAME).open("a", encoding="utf-8")

    @classmethod
    def open(cls, subId: str | None = None) -> Self:  # noqa: N803 - the name programs use
        """Open the file of this process."""
        return cls(subId)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; may be called again."""
        self._file.close()

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()


class EMetrics(AppendedFile):
    """Appends metrics to a file; a context manager.

    Args:
        sub_id: of one experiment among several; it goes into every line, and test metrics go to
            ``$RESULT_DIR/val_dict_list.json`` as well.
    """

    _NAME = "evaluation-metrics.txt"
    TEST_GROUP: ClassVar[str] = "test"
    TRAIN_GROUP: ClassVar[str] = "train"
    _rindex: ClassVar[Iterator[int]] = itertools.count(1)
    _validation: ClassVar[dict[str, list[dict[str, Any]]]] = {}  # by sub_id: files are opened again and again

    def __init__(self, sub_id: str | None = None) -> None:
        super().__init__(sub_id)
        self._training_id = os.environ.get("TRAINING_ID", os.environ.get("DLI_EXECID", ""))

    def record(
        self, group: str, step: int, values: Mapping[str, Any], etimes: Mapping[str, Any] | None = None
    ) -> None:
        """Append one line.

        Args:
            group: `TEST_GROUP`, `TRAIN_GROUP` or a name of your own.
            step: the iteration.
            values: metrics by name.
            etimes: further times of the record, by name.
        """
        now = time.time()
        meta: dict[str, Any] = {
            "training_id": self._training_id,
            "time": int(now * 1000),
            "rindex": next(self._rindex),
        }
        if self._sub_id is not None:
            meta["subid"] = str(self._sub_id)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
        times = {"iteration": _typed(step), "time_stamp": {"type": 4, "value": stamp}}
        times |= {name: _typed(value) for name, value in (etimes or {}).items()}
        record = {
            "meta": meta,
            "grouplabel": group,
            "etimes": times,
            "values": {name: _typed(value) for name, value in values.items()},
        }
        self._write(json.dumps(record))
        if group == self.TEST_GROUP and self._sub_id is not None:
            losses = self._validation.setdefault(str(self._sub_id), [])
            losses.append({"steps": step, **{name: float(value) for name, value in values.items()}})

    @override
    def close(self) -> None:
        if self._file.closed:
            return
        super().close()
        losses = self._validation.get(str(self._sub_id))
        if losses and "RESULT_DIR" in os.environ:
            path = Path(os.environ["RESULT_DIR"], "val_dict_list.json")
            path.write_text(json.dumps(losses), encoding="utf-8")


def _typed(value: Any) -> dict[str, Any]:
    """A value as the lines have it: whole numbers are of type 2, others of type 3."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {"value": str(value)}
    return {"type": 2 if isinstance(value, int) else 3, "value": str(value)}
