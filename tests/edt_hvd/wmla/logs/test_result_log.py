from dataclasses import replace

import pytest

from edt_hvd.wmla.logs.loggers import Logger
from edt_hvd.wmla.logs.result_log import ResultLog, ToLogger
from edt_hvd.wmla.results import Begun, EpochDone, Means, MiniBatch, StepDone, Validated
from small_programs import RememberingNames

PLAN = Begun(batches=3, batches_per_step=2)
NAMES = ("f1",)


def batch(loss: float) -> MiniBatch:
    return MiniBatch(4, loss, 50.0, (0.5,))


def steps(epoch: int) -> list[StepDone]:
    return [StepDone(epoch, 0, 2, (batch(3.0), batch(1.0))), StepDone(epoch, 1, 3, (batch(5.0),))]


def test_results_reach_the_logger_once_with_their_numbers() -> None:
    logger, epochs = RememberingNames(), list[int]()
    result_log = ResultLog([ToLogger(Logger(logger), NAMES)], epochs.append)
    for message in (PLAN, *steps(0), PLAN, *steps(0), Validated(0, batch(2.0)), EpochDone(0), *steps(1)):
        result_log.take(message)
    assert [(row["loss"], iteration, epoch) for row, iteration, epoch in logger.train] == [
        (3.0, 1, 0),
        (2.0, 2, 0),
        (3.0, 3, 0),
        (3.0, 4, 1),
        (2.0, 5, 1),
        (3.0, 6, 1),
    ]
    assert logger.test == [({"loss": 2.0, "accuracy": 50.0, "f1": 0.5}, 0, 0)]
    assert epochs == [1]


def test_a_training_that_goes_on_goes_on_with_its_means() -> None:
    before, after = RememberingNames(), RememberingNames()
    means = Means()
    first, second = steps(1)
    one = ResultLog([ToLogger(Logger(before), NAMES)])
    for message in (PLAN, *steps(0), first):
        one.take(message)
    for each in first.batches:
        means.add(1, each)
    another = ResultLog([ToLogger(Logger(after), NAMES)])
    another.take(replace(PLAN, means=means.state_dict()))
    for result_log in (one, another):
        result_log.take(second)
    assert after.train == before.train[-1:]


def test_rows_that_are_missing_are_told() -> None:
    result_log = ResultLog([])
    result_log.take(PLAN)
    result_log.take(steps(0)[1])  # the first that this driver hears of
    result_log.take(steps(1)[0])
    with pytest.warns(UserWarning, match="of mini-batches 6 to 8 were lost"):
        result_log.take(steps(2)[1])
