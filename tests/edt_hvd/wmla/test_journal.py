from edt_hvd.wmla.journal import Journal, ToLogger
from edt_hvd.wmla.loggers import Logger
from edt_hvd.wmla.results import Begun, EpochDone, MiniBatch, StepDone, Validated
from small_programs import RememberingNames

PLAN = Begun(steps=2, batches=3, batches_per_step=2, metrics=("f1",))


def batch(loss: float) -> MiniBatch:
    return MiniBatch(4, loss, 50.0, (0.5,))


def steps(epoch: int) -> list[StepDone]:
    return [StepDone(epoch, 0, 2, (batch(3.0), batch(1.0))), StepDone(epoch, 1, 3, (batch(5.0),))]


def test_results_reach_the_logger_once_with_their_numbers() -> None:
    logger, epochs = RememberingNames(), list[int]()
    journal = Journal([ToLogger(Logger(logger), PLAN.metrics)], epochs.append)
    for message in (PLAN, *steps(0), PLAN, *steps(0), Validated(0, batch(2.0)), EpochDone(0), *steps(1)):
        journal.take(message)
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


def test_who_takes_over_knows_the_means() -> None:
    logger = RememberingNames()
    journal = Journal([ToLogger(Logger(logger), PLAN.metrics)])
    first, second = steps(0)
    journal.take(PLAN, aloud=False)
    journal.take(first, aloud=False)
    journal.take(PLAN)
    journal.take(second)
    assert [(row["loss"], iteration) for row, iteration, _ in logger.train] == [(3.0, 3)]
