"""How results of others' suites for torchrun are judged."""

import pytest

from torchrun_suites import Ended, Result, compare, judge


@pytest.mark.parametrize(
    "line, result",
    [
        ("test_run.py::ElasticLaunchTest::test_launch_elastic PASSED  [ 4%]", "passed"),
        ("test_run.py::ElasticLaunchTest::test_virtual_local_rank SKIPPED (no GPU) [ 9%]", "skipped: no GPU"),
        ("a.py::T::test_launch_shutdown FAILED [ 9%]", "failed: replaces torch's agent"),
    ],
)
def test_outcomes_that_are_expected(line: str, result: str) -> None:
    name = line.split(maxsplit=1)[0].rpartition("::")[2]
    assert judge(line) == Result(name, result)


def test_a_program_has_to_end_as_under_torchrun() -> None:
    theirs = Ended(0, {"a.json": [1.5]}, "")
    assert compare("x", theirs, theirs) == Result("x", "exit code 0, the same 1 JSON files as under torchrun")
    assert compare("x", Ended(1, {}, ""), theirs) == Result("x", "exit code 1, under torchrun 0", False)
    other = Ended(0, {"a.json": [2.5]}, "")
    assert compare("x", other, theirs) == Result("x", "differs from torchrun in a.json", False)
