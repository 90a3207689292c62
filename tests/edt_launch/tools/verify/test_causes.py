"""The verdict over hand-written records: what differs, and where the traces part, give the cause."""

import pytest

from edt_launch.tools.verify.causes import Cause, verdict
from edt_launch.tools.verify.traces import Finding, Parting
from handwritten import GROWN, ONE, TWO, WEIGHT, run

AGAIN = {"schedule": ONE, "suffix": " again"}


def explain(other, finding=None, **reference):
    explanation = verdict([run(**reference), run(**other)], finding).explanation
    assert explanation is not None
    return explanation


def test_runs_that_agree_need_no_explanation():
    result = verdict([run(), run(**AGAIN), run(TWO)])
    assert (result.agree, result.explanation) == (True, None)
    assert (result.steps, result.compared) == (3, 6)
    assert result.runs == ("1 worker", "1 worker again", "2 workers")


@pytest.mark.parametrize(
    "parting, cause, words",
    [
        (Parting.DATA, Cause.DATA, "the samples differ in micro-batch 2"),
        (Parting.OPERATOR, Cause.OPERATOR, "op made other outputs of the same inputs in micro-batch 2"),
        (Parting.PATH, Cause.RANDOM, "op runs in micro-batch 2 in place of another"),
        (Parting.GRADIENT, Cause.UNKNOWN, "the reduced gradient of op"),
    ],
)
def test_a_run_that_does_not_repeat_itself(parting, cause, words):
    explanation = explain(AGAIN | {"changes": [(1, 0, *WEIGHT)]}, Finding(parting, "op", 2))
    assert explanation.cause is cause
    assert words in explanation.why


@pytest.mark.parametrize("parting", [Parting.INPUT, Parting.PATH])
@pytest.mark.parametrize("schedule", [TWO, GROWN])
def test_what_comes_from_elsewhere_is_outside_the_state_when_runs_repeat_themselves(parting, schedule):
    explanation = explain({"schedule": schedule, "changes": [(3, 0, *WEIGHT)]}, Finding(parting, "op"))
    assert explanation.cause is Cause.OUTSIDE
    assert "between the reduction and commit()" in explanation.why
    assert "model (Sequential), optimizer (SGD), epoch (int)" in explanation.advice


@pytest.mark.parametrize("finding", [None, Finding(Parting.GRADIENT, "model.0.weight")])
def test_a_ring_rounds_differently_for_every_size(finding):
    changed = {"schedule": TWO, "changes": [(1, 0, *WEIGHT)]}
    explanation = explain(changed, finding, reductions=("ring",))
    assert explanation.cause is Cause.REDUCTION
    assert 'reduction="exact"' in explanation.advice
