from collections import Counter

from history import Executions, group, mistakes, redone


def row(time: float, world: int, epoch: int, step: int, *samples: int) -> dict:
    return {"time": time, "world": f"x.{world}", "epoch": epoch, "step": step, "samples": list(samples)}


def test_the_last_execution_of_a_step_counts() -> None:
    found = group(
        [
            row(9.0, 2, 0, 1, 2, 3),
            row(1.0, 1, 0, 0, 0),
            row(5.0, 1, 0, 1, 2),  # then a worker died
            row(1.5, 1, 0, 0, 1),
        ]
    )
    assert [execution.samples for execution in found[0, 1]] == [Counter([2]), Counter([2, 3])]
    assert redone(found) == 1
    assert mistakes(found, samples=4, epochs=1) == []


def test_going_back_undoes_all_that_came_after() -> None:
    found = group(
        [
            row(1.0, 1, 0, 0, 0, 1),
            row(2.0, 1, 1, 0, 0, 1),
            row(3.0, 1, 2, 0, 0, 1),  # then all were lost
            row(4.0, 2, 1, 0, 0, 1),
        ]
    )
    assert mistakes(found, samples=2, epochs=2) == []
    assert mistakes(found, samples=2, epochs=3) == ["epoch 2: 2 samples missing, sample 0 for one"]


def test_samples_that_are_missing_or_used_twice_are_told() -> None:
    found: Executions = group([row(1.0, 1, 0, 0, 0, 1, 1), row(2.0, 1, 2, 0, 0, 1, 2)])
    assert mistakes(found, samples=3, epochs=2) == [
        "epoch 0: 1 samples missing, sample 2 for one",
        "epoch 0: 1 samples used more than once, sample 1 for one",
        "epoch 1: 3 samples missing, sample 0 for one",
        "epoch 2: there should be 2 epochs only",
    ]
