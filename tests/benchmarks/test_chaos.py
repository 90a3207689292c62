"""What counts as enough of random faults, without a job."""

import random
from types import SimpleNamespace

import chaos

from edt_hvd.debug import fault_script


def test_faults_are_a_script_and_those_that_the_job_never_came_to_prove_nothing() -> None:
    args = SimpleNamespace(duration=60.0, restarts=1, faults=200, kinds=list(chaos.KINDS))
    rows = chaos.draw_faults(random.Random(1), args)  # type: ignore[arg-type]
    text = "\n".join(["faults = [", *(f"{chaos.toml(row)}," for row in rows), "]"])
    assert len(fault_script.parse(text)) == 200
    assert chaos.due(rows, 0, 0) == []
    assert chaos.due(rows, 10**6, 10**6) == rows
    came = chaos.due(rows, 100, 2)
    assert {row["step"] <= 100 if "step" in row else row["resize"] <= 2 for row in came} == {True}
    assert 0 < len(came) < 200


def test_a_third_of_the_faults_that_came_due_is_enough() -> None:
    assert chaos.proves_little(100, 2, 18, 6) == []
    assert "6 of 19 faults that came due" in chaos.proves_little(100, 2, 19, 6)[0]
    assert "1 worlds only" in chaos.proves_little(100, 1, 0, 0)[0]
