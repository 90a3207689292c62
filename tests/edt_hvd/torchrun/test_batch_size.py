"""Accumulation that keeps the total batch, and what does not fit it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.torchrun import accumulation, devices_and_nodes, fitting_sizes


@given(st.integers(1, 256), st.integers(1, 32), st.integers(1, 16))
def test_makes_up_the_total_exactly_where_the_size_fits(total, per_device, size):
    if size in fitting_sizes(total, per_device, 16):
        assert accumulation(total, per_device, size) * per_device * size == total
    else:
        with pytest.raises(
            ValueError, match=f"a total batch of {total} cannot be made of batches of {per_device}"
        ):
            accumulation(total, per_device, size)


def test_reads_the_environment_of_torchrun(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert accumulation(total=64, per_device=8) == 2
    assert devices_and_nodes() == {"devices": 2, "num_nodes": 2}
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    with pytest.raises(ValueError, match="LOCAL_WORLD_SIZE=3 does not divide WORLD_SIZE=4"):
        devices_and_nodes()
