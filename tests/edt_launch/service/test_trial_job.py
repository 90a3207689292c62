import pytest

from edt_launch.service.errors import InvalidError
from edt_launch.service.trial_job import filled


def test_only_parameters_are_filled_in() -> None:
    assert filled("--a={a},{b}{", {"a": 0.5}) == "--a=0.5,{b}{"
    assert filled('{"a": {a b}}', {"a b": "x"}) == '{"a": x}'


def test_filling_stops_at_the_limit() -> None:
    assert filled("{a}" * 3, {"a": "xy"}, 6) == "xyxyxy"
    with pytest.raises(InvalidError, match="characters with its parameters"):
        filled("{a}" * 32_000, {"a": "x" * 4096})
