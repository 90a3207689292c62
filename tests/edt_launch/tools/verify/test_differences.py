import pytest

from edt_launch.tools.verify.differences import first_difference
from handwritten import BIAS, BUFFER, GROWN, TWO, WEIGHT, run


def test_equal_runs_have_none_whatever_their_sizes():
    assert first_difference([run(), run(suffix=" again"), run(TWO), run(GROWN)]) is None


def test_the_first_step_and_name_are_found():
    runs = [
        run(),
        run(TWO, changes=[(3, 0, *WEIGHT), (2, 0, *BUFFER), (2, 0, *BIAS), (2, 0, "loss", "step.loss")]),
    ]
    difference = first_difference(runs)
    assert difference is not None
    assert (difference.reference, difference.run) == (runs[0], runs[1])
    assert (difference.step, difference.rank, difference.size) == (2, 0, 2)
    assert (difference.kind, difference.name) == BIAS
    assert difference.others == {"buffers": 1, "loss": 1}


def test_the_first_run_that_differs_counts_though_another_differs_earlier():
    runs = [run(), run(TWO, changes=[(3, 0, *WEIGHT)]), run(GROWN, changes=[(1, 0, *WEIGHT)])]
    difference = first_difference(runs)
    assert difference is not None
    assert difference.run is runs[1]


def test_every_worker_is_compared_with_the_reference():
    difference = first_difference([run(), run(GROWN, changes=[(3, 1, *WEIGHT)])])
    assert difference is not None
    assert (difference.step, difference.rank, difference.size) == (3, 1, 2)


def test_workers_of_one_run_are_compared():
    difference = first_difference([run(TWO, changes=[(1, 1, *BUFFER)])])
    assert difference is not None
    assert difference.is_of_workers
    assert not difference.is_repetition


@pytest.mark.parametrize("kind, name", [("values", "epoch"), ("loss", "step.loss")])
def test_only_the_coordinator_has_to_know_the_rest_of_the_state(kind, name):
    assert first_difference([run(), run(TWO, changes=[(1, 1, kind, name)])]) is None
    assert first_difference([run(), run(TWO, changes=[(1, 0, kind, name)])]) is not None


def test_what_only_one_run_has_differs():
    difference = first_difference([run(), run(TWO, changes=[(1, 0, "optimizer", "optimizer.step")])])
    assert difference is not None
    assert difference.name == "optimizer.step"


@pytest.mark.parametrize("steps", [2, 4])
def test_another_number_of_steps_is_a_difference(steps):
    difference = first_difference([run(), run(TWO, steps=steps)])
    assert difference is not None
    assert (difference.kind, difference.step) == ("length", min(steps, 3))
    assert difference.name == f"{steps} instead of 3"
