import pytest

from edt_launch.core.history.events import Progress
from edt_launch.core.history.job_history import JobHistory
from edt_launch.service.experiments.searches.trials import reported
from edt_messages.records import Value


def history(*reports: dict[str, Value]) -> JobHistory:
    found = JobHistory()
    for values in reports:
        found.observe(Progress(1, 0, 1, values))
    return found


def test_the_last_value_counts() -> None:
    assert reported("loss", history({"loss": 3.0}, {"loss": 2}, {"other": 1})).metric == 2.0


@pytest.mark.parametrize(
    "reports, said",
    [
        ([], "was never reported"),
        ([{"other": 1}], "was never reported"),
        ([{"loss": 1}, {"loss": float("nan")}], "was last nan, no number of less than 1e300"),
        ([{"loss": "low"}], "was last 'low'"),
        ([{"loss": -1e301}], "was last -1e+301"),
    ],
)
def test_what_is_no_metric_is_told(reports: list[dict[str, Value]], said: str) -> None:
    outcome = reported("loss", history(*reports))
    assert outcome.metric is None
    assert said in outcome.reason
