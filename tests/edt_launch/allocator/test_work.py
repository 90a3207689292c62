"""What a decision begins with."""

from dataclasses import replace
from math import nan

import pytest

from edt_launch.allocator.model import Cluster, Host, Job, Options, Usage
from edt_launch.allocator.work import bounds, gather, usable
from pools import NOW

JOB = Job("j", "ann", 2, 8, 0.0)
CLUSTER = Cluster((Host("h", ("0",)),))


@pytest.mark.parametrize(
    "change,message",
    [
        ({"weight": 0.0}, "weight 0: it has to be from 1e-09 to 1e\\+09"),
        ({"weight": nan}, "weight nan"),
        ({"max": 2**63}, "max 9223372036854775808: it has to be 2147483647 at most"),
        ({"usage": Usage(nan)}, "its figures have to be from 0 to 1e\\+18"),
        ({"usage": Usage(at=nan)}, "its figures"),
        ({"usage": Usage(attained=nan)}, "its figures"),
        ({"waiting_since": nan}, "waiting_since nan: it has to be a number"),
        ({"speedup": ((2, nan),)}, r"speedup \(\(2, nan\),\): its numbers have to be above 0"),
        ({"start_cost": -0.5}, "start_cost -0.5: it has to be 0 at least"),
    ],
)
def test_a_job_with_an_impossible_figure_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        gather(NOW, CLUSTER, (Job("a", "", 1, 1, 0.0), replace(JOB, **change)))
    with pytest.raises(ValueError, match="the time is nan"):
        gather(nan, CLUSTER, (JOB,))


@pytest.mark.parametrize(
    "options", [{"tolerance": 0.0}, {"tolerance": 0.5}, {"turn": -1.0}, {"longest_wait": nan}], ids=str
)
def test_an_impossible_option_is_refused(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"the option {name} is .*: it has to be [01] at least"):
        Options(**options)


def test_a_job_that_can_run_with_no_number_has_no_bounds():
    assert bounds(replace(JOB, allowed=(1, 9))) == (0, 0)
    assert bounds(replace(JOB, min=9)) == (0, 0)
    assert [usable(JOB, count) for count in (1, 9)] == [0, 8]
