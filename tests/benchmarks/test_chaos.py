"""The script of the chaos benchmark, and what a run of it proves."""

import random
from itertools import pairwise

import pytest
from chaos import BURST, draw_changes, proves_little


@pytest.mark.parametrize(
    "worlds, happened, found",
    [(20, 2, 0), (19, 2, 1), (20, 1, 1), (2, 0, 2)],
    ids=["enough", "w", "f", "both"],
)
def test_a_run_in_which_little_happened_proves_little(worlds: int, happened: int, found: int) -> None:
    assert len(proves_little(1000, worlds, 6, happened)) == found


def test_without_faults_none_has_to_find_a_victim() -> None:
    assert proves_little(30, 1, 0, 0) == []


def test_changes_come_in_bursts_with_pauses_in_which_the_job_may_train() -> None:
    changes = draw_changes(random.Random(7), 1000, 240.0)
    gaps = [after.at - before.at for before, after in pairwise(changes)]
    assert changes[-1].at == pytest.approx(240.0)
    assert sum(gap > BURST[1] for gap in gaps) > 50
    assert all(after.slots != before.slots for before, after in pairwise(changes))
