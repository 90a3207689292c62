from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import edt_hvd
from edt_hvd import reporting
from edt_hvd.reporting import REPORT_INTERVAL, ResizeReport, send_progress
from edt_messages.messages import Message, type_of
from edt_messages.records import content

pytestmark = pytest.mark.usefixtures("alone")


class Recorder:
    """A launcher that keeps what it is told."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, Any]]] = []

    def send(self, message: Message) -> None:
        self.messages.append((type_of(message), content(message)))


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(reporting.world, "current", lambda: SimpleNamespace(launcher=recorder))
    monkeypatch.setattr(reporting, "_values", {})
    monkeypatch.setattr(reporting, "_sent_at", float("-inf"))
    return recorder


def test_values_are_sent_as_plain_ones(launcher: Recorder) -> None:
    edt_hvd.report(loss=torch.tensor(0.5), steps=np.int64(3), note="warm-up", good=True)
    edt_hvd.report(steps=4)
    send_progress(7, 1, now=10.0)
    values = {"loss": 0.5, "steps": 4, "note": "warm-up", "good": True}
    assert launcher.messages == [("progress", {"step": 7, "epoch": 1, "size": 1, "values": values})]


def test_progress_is_sent_now_and_then(launcher: Recorder) -> None:
    for tenth in range(10):
        send_progress(tenth, None, now=tenth * REPORT_INTERVAL / 4)
    assert [sent["step"] for _, sent in launcher.messages] == [0, 4, 8]
    send_progress(10, None, now=9 * REPORT_INTERVAL / 4, at_once=True)
    assert launcher.messages[-1][1]["step"] == 10


@pytest.mark.parametrize("value", [torch.zeros(2), np.zeros(2), [1], None])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"report\(metric=\.\.\.\)"):
        edt_hvd.report(metric=value)


def test_a_resize_is_reported_once_with_its_phases(launcher: Recorder) -> None:
    report = ResizeReport(3, previous_size=2, size=4, stopped_at=100.0)
    report.mark("rendezvous", 100.25)
    report.mark("sync", 100.75)
    for now in (101.0, 109.0):
        report.send_to(launcher, now)
    phases = {"rendezvous": 0.25, "sync": 0.5}
    resumed = {"generation": 3, "from": 2, "to": 4, "pause": 1.0, "phases": phases}
    assert launcher.messages == [("resumed", resumed)]


def test_a_world_that_was_lost_before_it_trained_does_not_count(launcher: Recorder) -> None:
    assert ResizeReport.first(1, 3).trained_size == 3
    report = ResizeReport(2, previous_size=3, size=2, stopped_at=100.0)
    assert report.trained_size == 3
    report.send_to(launcher, 101.0)
    assert report.trained_size == 2


def test_a_first_world_interrupted_nothing(launcher: Recorder) -> None:
    ResizeReport.first(1, 2).send_to(launcher, 5.0)
    assert launcher.messages == []
