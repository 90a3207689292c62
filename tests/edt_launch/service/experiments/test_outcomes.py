import pytest

from edt_launch.core.events import Progress
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.db.types import Held
from edt_launch.service.experiments.outcomes import Outcome, Values, usage_of


def report(**values: object) -> Progress:
    return Progress(time=1.0, step=1, epoch=None, size=1, values=values)


def test_values_are_folded() -> None:
    values = Values()
    for loss in (0.5, float("nan"), 0.25, 0.75):
        values.observe(report(loss=loss, word="x", flag=True))
    assert values.columns() == {"loss": {"lowest": 0.25, "highest": 0.75, "last": 0.75, "missing": 1}}
    outcome = Outcome("succeeded", values=values.columns())
    assert (outcome.last("loss"), outcome.last("other")) == (0.75, None)
    assert Outcome.of(outcome.stored()) == outcome


def test_hours_are_devices_times_hours() -> None:
    def change(time: float, *devices: str, job: str = "j") -> AllocationRecord:
        held: Held = (("node1", devices),) if devices else ()
        return AllocationRecord(job, "ann", time, 0, len(devices), held, "")

    changes = [change(0, "0"), change(3600, "0", "1"), change(3600, "2", job="k"), change(7200)]
    for now, hours in ((5400, {"j": 2.0, "k": 0.5}), (9000, {"j": 3.0, "k": 1.5})):
        used = usage_of(changes, now)
        assert {job: one.hours for job, one in used.items()} == pytest.approx(hours)
        assert {job: one.since for job, one in used.items()} == {"j": 0, "k": 3600}
