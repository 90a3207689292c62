import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.submission.args import Arguments
from edt_launch.adapters.wmla.submission.catalogue import asked_priority, bounds, priority


@pytest.mark.parametrize(
    "framework, arguments, expected",
    [
        (Framework.ELASTIC, Arguments(), (1, 8)),
        (Framework.ELASTIC, Arguments(workers=2, devices=3), (1, 6)),
        (Framework.ELASTIC, Arguments(workers=2, most=4), (1, 4)),
        (Framework.SINGLE, Arguments(), (1, 1)),
        (Framework.SINGLE, Arguments(workers=1, devices=3), (3, 3)),
        (Framework.GANG, Arguments(workers=2, devices=2), (4, 4)),
    ],
)
def test_devices(framework: Framework, arguments: Arguments, expected: tuple[int, int]) -> None:
    assert bounds(framework, arguments, 8) == expected


def test_priorities_keep_their_order() -> None:
    assert [priority(asked) for asked in (None, 5000, 1, 4999, 5005, 10000, 65536)] == [
        *(0, 0, -1000, -1, 1, 1000, 1000)
    ]
    assert [asked_priority(own) for own in (-1000, 0, 1000)] == [0, 5000, 10000]
