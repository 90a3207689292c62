import pytest

from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments.searches.trial_job import SubmittedSearch, check_job, filled


def test_only_parameters_are_filled_in() -> None:
    assert filled("--a={a},{b}{", {"a": 0.5}) == "--a=0.5,{b}{"
    assert filled('{"a": {a b}}', {"a b": "x"}) == '{"a": x}'


def test_filling_stops_at_the_limit() -> None:
    assert filled("{a}" * 3, {"a": "xy"}, 6) == "xyxyxy"
    with pytest.raises(InvalidError, match="characters with its parameters"):
        filled("{a}" * 32_000, {"a": "x" * 4096})


@pytest.mark.parametrize("name", ["EDT_SEARCH", "EDT_TRIAL", "EDT_PARAMETERS"])
def test_variables_of_trials_are_not_the_users(name: str) -> None:
    search = {"parameters": {"lr": {"values": [1, 2]}}, "algorithm": "grid", "metric": "loss"}
    job = {"command": ["train.py"], "environment": {name: "1"}}
    spec = SubmittedSearch.model_validate({**search, "job": job})
    with pytest.raises(InvalidError, match=f"a value of {name} of its own"):
        check_job(spec, spec.job, "search")
