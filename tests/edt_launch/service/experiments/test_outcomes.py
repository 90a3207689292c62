import pytest

from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.db.types import Held
from edt_launch.service.experiments.outcomes import RunOutcome, usage_of


def test_an_outcome_is_stored_as_json() -> None:
    values = {"loss": {"lowest": 0.25, "highest": 0.75, "last": 0.75, "missing": 1}}
    outcome = RunOutcome("succeeded", values=values)
    assert (outcome.last("loss"), outcome.last("other")) == (0.75, None)
    assert RunOutcome.of(outcome.stored()) == outcome


def test_hours_are_devices_times_hours() -> None:
    def change(time: float, *devices: str, job: str = "j") -> AllocationRecord:
        held: Held = (("node1", devices),) if devices else ()
        return AllocationRecord(job, "ann", time, 0, len(devices), held, "")

    changes = [change(0, "0"), change(3600, "0", "1"), change(3600, "2", job="k"), change(7200)]
    for now, hours in ((5400, {"j": 2.0, "k": 0.5}), (9000, {"j": 3.0, "k": 1.5})):
        used = usage_of(changes, now)
        assert {job: one.hours for job, one in used.items()} == pytest.approx(hours)
        assert {job: one.since for job, one in used.items()} == {"j": 0, "k": 3600}
