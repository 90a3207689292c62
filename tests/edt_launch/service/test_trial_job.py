import pytest

from edt_launch.service.errors import InvalidError
from edt_launch.service.search_spec import SearchSpec
from edt_launch.service.trial_job import filled, longest


def test_only_parameters_are_filled_in() -> None:
    assert filled("--a={a},{b}{", {"a": 0.5}) == "--a=0.5,{b}{"
    assert filled('{"a": {a b}}', {"a b": "x"}) == '{"a": x}'


def test_filling_stops_at_the_limit() -> None:
    assert filled("{a}" * 3, {"a": "xy"}, 6) == "xyxyxy"
    with pytest.raises(InvalidError, match="characters with its parameters"):
        filled("{a}" * 32_000, {"a": "x" * 4096})


def test_the_longest_value_of_each_parameter_counts() -> None:
    spec = SearchSpec.model_validate(
        {
            "metric": "loss",
            "algorithm": "hyperband",
            "max_budget": 27,
            "parameters": {
                "words": {"values": ["a", "bcd", 7]},
                "depth": {"type": "int", "min": -100, "max": 9},
                "rate": {"min": 0, "max": 1},
            },
        }
    )
    found = longest(spec, str)
    assert (found["words"], found["depth"], found["budget"]) == ("bcd", -100, 27)
    assert len(str(found["rate"])) == 24
