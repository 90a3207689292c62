import pytest

from edt_hvd.wmla.executor import REPEATED, Sender
from edt_hvd.wmla.results import Begun, MiniBatch, Record, StepDone, decode

PLAN = Begun(1, 1)


def step_done(step: int) -> StepDone:
    return StepDone(0, step, 1, (MiniBatch(1, 0.0, 0.0),))


def test_a_new_coordinator_repeats_what_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    is_coordinator = [True]
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: is_coordinator[-1])
    sent: list[Record] = []
    first, second = (Sender(lambda text: sent.append(decode(text))) for _ in range(2))
    for message in (PLAN, *map(step_done, range(100))):
        for sender, coordinates in ((first, True), (second, False)):
            is_coordinator.append(coordinates)
            sender.emit(message)
    assert sent == [PLAN, *map(step_done, range(100))]
    is_coordinator.append(True)
    for message in (PLAN, step_done(99), step_done(100)):  # it is computed again after a rollback
        second.emit(message)
    assert sent[101:] == [PLAN, *map(step_done, range(100 - REPEATED, 101))]
