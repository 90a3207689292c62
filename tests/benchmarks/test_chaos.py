"""The script of the chaos benchmark, and what a run of it proves."""

import pytest
from chaos import proves_little


@pytest.mark.parametrize(
    "worlds, happened, found",
    [(20, 2, 0), (19, 2, 1), (20, 1, 1), (2, 0, 2)],
    ids=["enough", "w", "f", "both"],
)
def test_a_run_in_which_little_happened_proves_little(worlds: int, happened: int, found: int) -> None:
    assert len(proves_little(1000, worlds, 6, happened)) == found
