import re

import pytest

from edt_hvd.debug.fault_script import Action, Fault, Point, Unit, parse
from edt_hvd.errors import FaultError
from fault_rows import fault_script

BEFORE = Point.BEFORE_REDUCTION


@pytest.mark.parametrize(
    "row, fault",
    [
        ('{ step = 12, action = "kill", rank = 1 }', Fault(1, Unit.STEP, 12, BEFORE, Action.KILL, 1)),
        (
            '{ step = 60, action = "hang", rank = 0, point = "loader" }',
            Fault(1, Unit.STEP, 60, Point.LOADER, Action.HANG, 0),
        ),
        (
            '{ step = 5, action = "slow", rank = 2, seconds = 2, steps = 10 }',
            Fault(1, Unit.STEP, 5, BEFORE, Action.SLOW, 2, seconds=2.0, steps=10),
        ),
        (
            '{ resize = 1, action = "kill", rank = "newcomer", point = "waiting" }',
            Fault(1, Unit.RESIZE, 1, Point.WAITING, Action.KILL, None),
        ),
        (
            '{ checkpoint = 2, action = "kill", rank = 0 }',
            Fault(1, Unit.CHECKPOINT, 2, Point.AFTER_COMMIT, Action.KILL, 0),
        ),
    ],
)
def test_a_row_is_about_a_step_a_resize_or_a_checkpoint(row, fault):
    assert parse(fault_script(row)) == (fault,)


@pytest.mark.parametrize(
    "row, found, expected",
    [
        ('{ step = 0, action = "kill", rank = 0 }', "{'step': 0", "with a number from 1"),
        ('{ step = 3, action = "murder", rank = 0 }', "action = 'murder'", "one of kill, stop, "),
        ('{ step = 3, action = "kill", rank = 0, seconds = 2 }', "seconds", "action, point, rank, step"),
        ('{ step = 3, action = "slow", rank = 0, seconds = -1 }', "seconds = -1", "from 0 to 86400"),
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
        *("", "at step 12, kill rank 1", "faults = [1]", "faults = []\nother = 1"),
        pytest.param("faults = " + "[" * 3000, id="brackets"),
        pytest.param("faults = [] #" + " " * 2**20, id="too long"),
    ],
)
def test_a_file_that_is_no_script_is_refused(text):
    with pytest.raises(FaultError, match=r"the fault script: found .*; expected "):
        parse(text)
