import json
import re
from pathlib import Path
from typing import Any

import pytest

from edt_hvd.wmla import LoggerCallback
from edt_hvd.wmla.logs.loggers import DefaultLogger, Logger

METRICS = {"loss": 0.5, "accuracy": 87.5, "f1": 0.25}


@pytest.mark.parametrize("target", [None, LoggerCallback()])
def test_methods_that_are_not_there_or_not_overridden_do_nothing(target: Any) -> None:
    logger = Logger(target)
    logger.begin()
    logger.train(METRICS, 1, 0)
    logger.test(METRICS, 0, 0)
    logger.end()


@pytest.mark.parametrize(
    "method",
    [
        lambda self, logs: None,
        lambda self, acc, loss, completed_batch: None,
        lambda self, loss, acc, completed_batch, worker, more: None,
    ],
)
def test_other_parameters_are_refused_with_the_two_forms(method: Any) -> None:
    target = type("Odd", (), {"log_train_metrics": method})()
    with pytest.raises(
        TypeError, match=r"Odd.log_train_metrics has the parameters .*loss, acc.*metrics, iteration"
    ):
        Logger(target)


def test_default_logger_writes_what_notebooks_read(job: Path) -> None:
    logger = DefaultLogger()
    logger.log_train_metrics({"loss": 2.3, "accuracy": 12.5}, 1, 0)
    logger.log_test_metrics({"loss": 1.5, "accuracy": 50.0}, 0, 0)
    logger.on_train_end()
    train, test = (job / "log" / "stdout").read_text().splitlines()
    stamp = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]"
    assert re.fullmatch(
        stamp
        + r" Train,\tTimestamp: \d{13},\tGlobal steps: 1,\tIteration: 1,\tLoss: 2.30000,\tAccuracy: 0.12500",
        train,
    )
    assert re.fullmatch(stamp + r" Test,\tTimestamp: \d{13},\tLoss: 1.50000,\tAccuracy: 0.50000", test)
    assert json.loads((job / "val_dict_list.json").read_text()) == [{"steps": 1, "loss": 1.5}]
    records = (job / "log" / "evaluation-metrics.txt").read_text().splitlines()
    assert [json.loads(record)["grouplabel"] for record in records] == ["train", "test"]
