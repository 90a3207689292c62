import math

import pytest

from edt_hvd.wmla.results import (
    Begun,
    Deduplicator,
    EpochDone,
    Message,
    MiniBatch,
    StepDone,
    TrainingDone,
    Validated,
    decode,
    encode,
)

BATCH = MiniBatch(64, 0.5, 25.0, (1.5,))


@pytest.mark.parametrize(
    "message",
    [
        Begun(16, 4, {"epoch": 0, "samples": 4, "sums": [0.1, math.inf]}),
        StepDone(1, 2, 3, (BATCH, MiniBatch(2, -1.0, 0.0, (0.0,)))),
        StepDone(0, 0, 1, (MiniBatch(1, math.inf, 0.0),)),
        Validated(3, BATCH),
        EpochDone(3),
        TrainingDone(),
    ],
)
def test_messages_survive_the_wire(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("line", [b"", b"[]", b'{"is": "Other"}', b'{"is": "StepDone", "epoch": 1}', b"\xff"])
def test_what_is_no_message_is_named(line: bytes) -> None:
    with pytest.raises(ValueError, match="is no message of an executor"):
        decode(line)


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
