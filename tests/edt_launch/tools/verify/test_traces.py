import pytest

from edt_launch.tools.verify.records import Operator
from edt_launch.tools.verify.traces import Finding, Parting, compare

FIRST, SECOND = (0, 0), (0, 4)


def micro_batch(key, *rest, rank=0, data="x"):
    return [Operator(rank, key, "forward", "data", "", data), *rest]


def forward(key, name="aten::mm", inputs="i", outputs="o", rank=0, **more):
    return Operator(rank, key, "forward", name, inputs, outputs, **more)


def update(name="aten::add_", inputs="i", outputs="o", rank=0):
    return Operator(rank, None, "update", name, inputs, outputs)


def test_micro_batches_are_compared_whoever_computed_them():
    one = [*micro_batch(FIRST, forward(FIRST)), *micro_batch(SECOND, forward(SECOND)), update()]
    two = [*micro_batch(SECOND, forward(SECOND, rank=1), rank=1), update(rank=1)]
    two += [*micro_batch(FIRST, forward(FIRST)), update()]
    assert compare(one, two, 0) is None
    assert compare(one, two, 1) is None


@pytest.mark.parametrize(
    "changed, parting",
    [
        (forward(SECOND, outputs="p"), Parting.OPERATOR),
        (forward(SECOND, outputs="p", is_random=True), Parting.RANDOM),
        (forward(SECOND, inputs="j", outputs="p"), Parting.INPUT),
        (forward(SECOND, name="aten::bmm", outputs="p"), Parting.PATH),
    ],
)
def test_the_first_operator_that_differs_is_named(changed, parting):
    good = [
        *micro_batch(FIRST, forward(FIRST)),
        *micro_batch(SECOND, forward(SECOND), forward(SECOND, "late")),
    ]
    bad = [*good[:3], changed, forward(SECOND, "late", inputs="j", outputs="p")]
    assert compare(good, bad, 0) == Finding(parting, changed.name, micro_batch=1)
