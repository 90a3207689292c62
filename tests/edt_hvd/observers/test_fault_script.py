import re

import pytest

from edt_hvd.errors import FaultError
from edt_hvd.observers.fault_script import (
    Allocate,
    Corrupt,
    Drop,
    Fault,
    FillDisk,
    FreeDisk,
    Hang,
    Kill,
    Place,
    Slow,
    Stop,
    Terminate,
    Unit,
    parse,
)


@pytest.mark.parametrize(
    "text, number, place, rank, deed",
    [
        ("at step 12, kill rank 1", 12, Place.BEFORE_REDUCTION, 1, Kill()),
        ("at step 12, kill rank 0 after the commit", 12, Place.AFTER_COMMIT, 0, Kill()),
        ("at step 3, kill rank 10 after the reduction", 3, Place.AFTER_REDUCTION, 10, Kill()),
        ("at step 20, stop rank 0", 20, Place.BEFORE_REDUCTION, 0, Stop()),
        ("at step 50, terminate rank 1 before the reduction", 50, Place.BEFORE_REDUCTION, 1, Terminate()),
        ("at step 60, hang rank 2 in the data loader", 60, Place.IN_LOADER, 2, Hang()),
        ("at step 60, hang rank 2 in a micro-batch", 60, Place.IN_MICRO_BATCH, 2, Hang()),
        ("at step 9, drop rank 1", 9, Place.BEFORE_REDUCTION, 1, Drop()),
        ("at step 5, slow rank 2 by 0.5 s", 5, Place.BEFORE_REDUCTION, 2, Slow(0.5)),
        ("at step 5, slow rank 2 by 2 s for 10 steps", 5, Place.BEFORE_REDUCTION, 2, Slow(2.0, 10)),
        ("at step 30, corrupt the newest checkpoint", 30, Place.BEFORE_REDUCTION, 0, Corrupt()),
        ("at step 30, truncate the newest checkpoint", 30, Place.BEFORE_REDUCTION, 0, Corrupt(truncate=True)),
        ("at step 31, fill the disk", 31, Place.BEFORE_REDUCTION, 0, FillDisk()),
        ("at step 31, free the disk after the commit", 31, Place.AFTER_COMMIT, 0, FreeDisk()),
        ("at step 40, allocate 1 4 2 slots", 40, Place.BEFORE_REDUCTION, 0, Allocate((1, 4, 2))),
        ("at step 40, allocate 1 slot", 40, Place.BEFORE_REDUCTION, 0, Allocate((1,))),
    ],
)
def test_what_can_happen_in_a_step(text, number, place, rank, deed):
    assert parse(text) == (Fault(1, Unit.STEP, number, place, rank, deed),)


@pytest.mark.parametrize(
    "text, number, place, rank",
    [
        ("at resize 2, kill rank 1", 2, Place.IN_RENDEZVOUS, 1),
        ("at resize 2, kill rank 1 at the door", 2, Place.AT_DOOR, 1),
        ("at resize 1, kill rank 0 in transfer", 1, Place.IN_TRANSFER, 0),
        ("at resize 1, kill a newcomer in rendezvous", 1, Place.IN_RENDEZVOUS, None),
    ],
)
def test_what_can_happen_in_a_resize(text, number, place, rank):
    assert parse(text) == (Fault(1, Unit.RESIZE, number, place, rank, Kill()),)


def test_what_can_happen_when_a_checkpoint_is_there():
    (fault,) = parse("at checkpoint 2, corrupt the newest checkpoint")
    assert fault == Fault(1, Unit.CHECKPOINT, 2, Place.AFTER_COMMIT, 0, Corrupt())


def test_comments_and_empty_lines_count_as_lines_only():
    script = "# faults\n\n  at step 1, kill rank 0  # the first\nat step 2, drop rank 1\n"
    assert [fault.line for fault in parse(script)] == [3, 4]
    assert parse("") == ()


@pytest.mark.parametrize(
    "text, found, expected",
    [
        ("in step 3, kill rank 0", "in step 3, kill rank 0", "'at UNIT N, ...'"),
        ("at step 0, kill rank 0", "at step 0, kill rank 0", "with N from 1"),
        ("at step 3 kill rank 0", "at step 3 kill rank 0", "'at UNIT N, ...'"),
        ("at step 3, murder rank 0", "murder rank 0", "one of kill rank R; stop rank R"),
        ("at step 3, kill rank one", "kill rank one", "one of kill rank R"),
        ("at step 3, kill", "kill", "one of kill rank R"),
        ("at step 3, kill rank 0 in bed", "kill rank 0 in bed", "and then the place, if any"),
        ("at step 3, slow rank 0 by 0.5", "slow rank 0 by 0.5", "slow rank R by X s [for N steps]"),
        ("at step 3, allocate 0 slots", "allocate 0 slots", "allocate N [N ...] slots"),
        ("at step 3, kill rank 0 at the door", "at the door", "a place at a step: 'before the reduction'"),
        ("at resize 3, kill rank 0 after the commit", "after the commit", "a place at a resize"),
        ("at checkpoint 3, kill rank 0 in transfer", "in transfer", "a place at a checkpoint"),
        ("at step 3, kill a newcomer", "a newcomer", "'rank R'"),
        ("at checkpoint 3, kill a newcomer", "a newcomer", "'rank R'"),
        ("at resize 3, slow rank 0 by 1 s for 2 steps", "2 steps", "no number of steps at a resize"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(text, found, expected):
    with pytest.raises(FaultError, match=re.escape(f"line 2 of the fault script: {found!r}")) as raised:
        parse(f"\n{text}\n")
    assert expected in str(raised.value)
