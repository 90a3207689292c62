import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.filling import divide, fill

CHILDREN = st.lists(
    st.tuples(st.floats(0.01, 100), st.integers(0, 20), st.integers(0, 20)).map(
        lambda child: (child[0], float(min(child[1:])), float(max(child[1:])))
    ),
    min_size=1,
    max_size=12,
)


@given(CHILDREN, st.floats(0, 1))
def test_everybody_gets_the_same_level_within_its_bounds(children, part):
    weights, lows, highs = map(list, zip(*children, strict=True))
    total = sum(lows) + part * (sum(highs) - sum(lows))
    shares = fill(total, weights, lows, highs)
    assert sum(shares) == pytest.approx(total, abs=1e-5)
    assert all(low <= share <= high for share, low, high in zip(shares, lows, highs, strict=True))
    could_grow = [
        share / weight for share, weight, high in zip(shares, weights, highs, strict=True) if share < high
    ]
    could_shrink = [
        share / weight for share, weight, low in zip(shares, weights, lows, strict=True) if share > low
    ]
    if could_grow and could_shrink:
        assert max(could_shrink) <= min(could_grow) * (1 + 1e-5) + 1e-4


@given(
    st.lists(st.tuples(CHILDREN, st.floats(0, 1)), min_size=1, max_size=5), st.randoms(use_true_random=False)
)
def test_divisions_at_once_are_those_one_by_one(groups, random):
    totals, alone, everybody = [], [], []
    for group, (children, part) in enumerate(groups):
        weights, lows, highs = map(list, zip(*children, strict=True))
        totals.append(sum(lows) + part * (sum(highs) - sum(lows)))
        alone.extend(fill(totals[-1], weights, lows, highs))
        everybody += [(group, *child) for child in children]
    order = random.sample(range(len(everybody)), len(everybody))
    of, weights, lows, highs = map(np.array, zip(*[everybody[place] for place in order], strict=True))
    shares = divide(np.array(totals), of, weights, lows, highs)
    assert shares == pytest.approx([alone[place] for place in order], abs=1e-5)
