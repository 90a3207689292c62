from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.jobs.resize_reasons import explained


def change(time: float, before: int, after: int, reason: str) -> AllocationRecord:
    return AllocationRecord("jaaaaaaaa", "ann", time, before, after, (), reason)


def test_a_resize_has_the_reason_of_the_last_decision_for_its_size() -> None:
    changes = [
        change(1.0, 0, 2, "starts"),
        change(10.0, 2, 4, "room"),
        change(20.0, 4, 2, "bob's share"),
        change(30.0, 2, 4, "room again"),
    ]
    pauses = [
        {"from": None, "to": 2, "start": 1.0, "end": 3.0, "reason": "first world"},
        {"from": 2, "to": 4, "start": 11.0, "end": 12.0, "reason": "grown"},
        {"from": 4, "to": 2, "start": 20.0, "end": 21.0, "reason": "shrunk"},
        {"from": 2, "to": 3, "start": 25.0, "end": 26.0, "reason": "grown"},
        {"from": 2, "to": 4, "start": 31.0, "end": 32.0, "reason": "grown"},
    ]
    reasons = [pause["reason"] for pause in explained(pauses, changes)]
    assert reasons == ["first world", "room", "bob's share", "grown", "room again"]
    assert explained(pauses, []) == pauses
