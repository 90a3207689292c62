import re

import pytest

from edt_hvd.debug.fault_script import Action, Fault, Point, Unit, parse
from edt_hvd.errors import FaultError
from fault_rows import fault_script

BEFORE = Point.BEFORE_REDUCTION


def test_a_row_is_about_a_step_and_a_worker():
    rows = (
        '{ step = 12, action = "kill", rank = 1 }',
        '{ step = 60, action = "hang", rank = 0, point = "loader" }',
        '{ step = 5, action = "slow", rank = 2, seconds = 2, steps = 10 }',
        '{ step = 5, action = "slow", rank = 2, seconds = 0.5 }',
    )
    assert parse(fault_script(*rows)) == (
        Fault(1, Unit.STEP, 12, BEFORE, Action.KILL, 1),
        Fault(2, Unit.STEP, 60, Point.LOADER, Action.HANG, 0),
        Fault(3, Unit.STEP, 5, BEFORE, Action.SLOW, 2, seconds=2.0, steps=10),
        Fault(4, Unit.STEP, 5, BEFORE, Action.SLOW, 2, seconds=0.5),
    )


def test_a_row_may_be_about_a_resize_or_a_checkpoint():
    rows = (
        '{ resize = 2, action = "kill", rank = 1 }',
        '{ resize = 1, action = "kill", rank = "newcomer", point = "waiting" }',
        '{ checkpoint = 2, action = "kill", rank = 0 }',
    )
    assert parse(fault_script(*rows)) == (
        Fault(1, Unit.RESIZE, 2, Point.RENDEZVOUS, Action.KILL, 1),
        Fault(2, Unit.RESIZE, 1, Point.WAITING, Action.KILL, None),
        Fault(3, Unit.CHECKPOINT, 2, Point.AFTER_COMMIT, Action.KILL, 0),
    )


@pytest.mark.parametrize(
    "row, found, expected",
    [
        (
            '{ action = "kill", rank = 0 }',
            "{'action': 'kill', 'rank': 0}",
            "one of step, resize and checkpoint",
        ),
        ('{ step = 0, action = "kill", rank = 0 }', "{'step': 0", "with a number from 1"),
        ('{ step = 3, action = "murder", rank = 0 }', "action = 'murder'", "one of kill, stop, "),
        ('{ step = 3, action = "kill", rank = "one" }', "rank = 'one'", "the number of a worker, from 0"),
        ('{ step = 3, action = "fill-disk", rank = 0 }', "rank", "of fill-disk at a step only action, point"),
        ('{ step = 3, action = "kill", rank = 0, seconds = 2 }', "seconds", "action, point, rank, step"),
        ('{ step = 3, action = "slow", rank = 0, seconds = -1 }', "seconds = -1", "from 0 to 86400"),
        ('{ step = 3, action = "allocate", slots = [0] }', "slots = [0]", "a list of numbers from 1"),
        ('{ step = 3, action = "kill", rank = 0, point = "waiting" }', "point = 'waiting'", "at a step"),
    ],
)
def test_a_row_that_makes_no_sense_is_named(row, found, expected):
    with pytest.raises(FaultError, match=re.escape(f"fault 2: found {found}")) as raised:
        parse(fault_script('{ step = 1, action = "kill", rank = 0 }', row))
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "at step 12, kill rank 1", "faults = 1", "faults = [1]", "faults = []\nother = 1"),
        pytest.param("faults = " + "[" * 3000, id="brackets"),
        pytest.param("faults = [" + "9" * 5000 + "]", id="digits"),
        pytest.param("faults = [] #" + " " * 2**20, id="too long"),
    ],
)
def test_a_file_that_is_no_script_is_refused(text):
    with pytest.raises(FaultError, match=r"the fault script: found .*; expected "):
        parse(text)
