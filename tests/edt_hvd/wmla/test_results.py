from edt_hvd.wmla.results import (
    Deduplicator,
    EpochDone,
    MiniBatch,
    StepDone,
    TrainingDone,
    Validated,
    cut,
    decode,
    encode,
)

BATCH = MiniBatch(64, 0.5, 25.0, (1.5,))


def test_a_large_step_is_told_in_parts_of_limited_size() -> None:
    batch = BATCH._replace(metrics=(1 / 3,) * 20)
    done = StepDone(1, 2, 3, (batch,) * 1000)
    parts = list(cut(done))
    assert [part.first for part in parts] == [*range(0, 1000, len(parts[0].batches))]
    assert sum((part.batches for part in parts), ()) == done.batches
    assert max(len(encode(part)) for part in parts) < 2**17
    known = Deduplicator()
    told = [*parts, *parts[3:]]  # by another coordinator
    assert [decode(encode(part)) for part in told if known.admits(part)] == parts


def test_every_result_passes_once_and_in_order() -> None:
    known = Deduplicator()
    first, second = StepDone(0, 0, 1, (BATCH,)), StepDone(0, 1, 2, (BATCH,))
    tested, done, next_epoch = Validated(0, BATCH), EpochDone(0), StepDone(1, 0, 1, (BATCH,))
    told = [first, second, first, second, tested, second, tested, done, done, next_epoch, tested]
    told += [TrainingDone(), next_epoch, TrainingDone()]
    assert [result for result in told if known.admits(result)] == [
        *(first, second, tested, done, next_epoch),
        TrainingDone(),
    ]
