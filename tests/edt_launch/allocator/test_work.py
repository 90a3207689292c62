"""What a decision begins with."""

from dataclasses import replace
from math import inf, nan

import pytest

from edt_launch.allocator.model import Cluster, Host, Job, Options, Usage
from edt_launch.allocator.work import bounds, gather, next_usable, usable
from pools import NOW

JOB = Job("j", "ann", 2, 8, 0.0)


@pytest.mark.parametrize(
    "change,message",
    [
        ({"weight": 0.0}, "weight 0: it has to be from 1e-09 to 1e\\+09"),
        ({"weight": inf}, "weight inf: it has to be from"),
        ({"weight": nan}, "weight nan: it has to be from"),
        ({"max": 2**63}, "max 9223372036854775808: it has to be 2147483647 at most"),
        ({"weight": 1e308}, "weight 1e\\+308: it has to be from"),
        ({"usage": Usage(nan)}, "its figures have to be from 0 to 1e\\+18"),
        ({"usage": Usage(1e308, 1e308)}, "its figures have to be from 0"),
        ({"usage": Usage(attained=nan)}, "its figures have to be from 0 to 1e\\+18"),
        ({"resize_cost": nan}, "resize_cost nan: it has to be a number"),
        ({"protected": nan}, "protected nan: it has to be a number"),
        ({"started": nan}, "started nan: it has to be a number"),
        ({"waiting_since": nan}, "waiting_since nan: it has to be a number"),
        ({"speedup": ((2, nan),)}, r"speedup \(\(2, nan\),\): its numbers have to be above 0"),
        ({"speedup": ((2, -1.0),)}, "its numbers have to be above 0, and finite"),
        ({"speedup": ((0, 1.0),)}, "its numbers have to be above 0"),
        ({"resize_cost": -1.0}, "resize_cost -1: it has to be 0 at least"),
        ({"start_cost": -0.5}, "start_cost -0.5: it has to be 0 at least"),
        ({"usage": Usage(-5.0, 10.0)}, "its figures have to be from 0"),
        ({"usage": Usage(at=nan)}, "its figures have to be from 0"),
        ({"usage": Usage(-1.0)}, "its figures have to be from 0"),
    ],
)
def test_a_job_with_an_impossible_figure_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        gather(NOW, Cluster((Host("h", ("0",)),)), (Job("a", "", 1, 1, 0.0), replace(JOB, **change)))


@pytest.mark.parametrize(
    "options", [{"tolerance": 0.0}, {"tolerance": 0.5}, {"turn": -1.0}, {"longest_wait": nan}], ids=str
)
def test_an_impossible_option_is_refused(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"the option {name} is .*: it has to be [01] at least"):
        Options(**options)


def test_a_time_has_to_be_finite():
    with pytest.raises(ValueError, match="the time is nan"):
        gather(nan, Cluster((Host("h", ("0",)),)), (JOB,))


@pytest.mark.parametrize("allowed,sizes", [(None, [0, 2, 5, 8, 8]), ((1, 3, 4, 20), [0, 0, 4, 4, 4])])
def test_a_job_uses_the_most_that_it_can_run_with(allowed, sizes):
    job = replace(JOB, allowed=allowed)
    assert [usable(job, count) for count in (1, 2, 5, 8, 9)] == sizes


@pytest.mark.parametrize("allowed,sizes", [(None, [2, 6, None]), ((3, 4, 20), [3, None, None])])
def test_a_job_grows_to_the_next_number_that_it_can_run_with(allowed, sizes):
    job = replace(JOB, allowed=allowed)
    assert [next_usable(job, count) for count in (0, 5, 8)] == sizes


def test_a_job_that_can_run_with_no_number_has_no_bounds():
    assert bounds(replace(JOB, allowed=(1, 9))) == (0, 0)
    assert bounds(replace(JOB, min=9)) == (0, 0)
