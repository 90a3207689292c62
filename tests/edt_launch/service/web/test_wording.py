from edt_launch.service.web.wording import (
    bounds,
    number,
    precise,
    progress,
)


def test_bounds_and_numbers() -> None:
    assert [bounds(1, 4, None), bounds(2, 2, None), bounds(1, 4, (1, 2, 4))] == ["1-4", "2", "1, 2, 4"]
    assert [number(None, 1), number(2.0, 1), number(1.25, 1)] == ["-", "2", "1.2"]
    assert [precise(None), precise(0.123456)] == ["-", "0.1235"]
    assert [progress(None, 4), progress(3, None), progress(1, 3)] == ["-", "step 3", "33%"]
