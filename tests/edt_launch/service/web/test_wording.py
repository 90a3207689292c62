from edt_launch.service.web.wording import (
    bounds,
    number,
    precise,
    progress,
    short,
)


def test_bounds_and_numbers() -> None:
    assert [bounds(1, 4, None), bounds(2, 2, None), bounds(1, 4, (1, 2, 4))] == ["1-4", "2", "1, 2, 4"]
    assert [number(None, 1), number(2.0, 1), number(1.25, 1)] == ["-", "2", "1.2"]
    assert [precise(None), precise(0.123456)] == ["-", "0.1235"]
    assert [progress(None, 4), progress(3, None), progress(1, 3)] == ["-", "step 3", "33%"]


def test_a_long_fraction_is_short_and_other_texts_stay_as_they_are() -> None:
    numbers = ["0.012345678901234567", "-1.23456e-05", "12.345678"]
    assert [short(number) for number in numbers] == ["0.01235", "-1.235e-05", "12.35"]
    texts = ["0.1", "1.10", "0.0001", "20261128", "123456", "1.2.34567", "v1.23456", "nan", "", "0.000000"]
    assert [short(text) for text in texts] == texts
