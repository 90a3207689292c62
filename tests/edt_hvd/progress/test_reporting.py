import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import edt_hvd
from edt_hvd.progress import reporting
from edt_hvd.progress.reporting import REPORT_INTERVAL, ResizeReport, send_progress
from edt_messages.messages import MAX_LINE, Message, Progress, encode, type_of
from edt_messages.records import VALUES_BYTES, content

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
    for epoch, sent in ((np.int64(3), 3), (torch.tensor(3), 3), (0.5, None), ("warm-up", None)):
        send_progress(11, epoch, now=0.0, at_once=True)
        assert type(launcher.messages[-1][1]["epoch"]) is type(sent)


@pytest.mark.parametrize(
    "values, error, said",
    [
        ({"metric": torch.zeros(2)}, TypeError, r"report\(metric=\.\.\.\)"),
        ({"metric": None}, TypeError, r"report\(metric=\.\.\.\)"),
        ({"total_steps": math.nan, "loss": 0.5}, ValueError, r"report\(total_steps="),
        ({"total_steps": "100", "loss": 0.5}, TypeError, r"report\(total_steps="),
        ({"seed": 2**63}, ValueError, r"report\(seed=\.\.\.\): an integer of \d+ bits; give one of 64"),
        ({"seed": -(10**400)}, ValueError, "give one of 64"),
    ],
)
def test_what_is_no_number_of_64_bits_is_refused(
    values: dict[str, Any], error: type[Exception], said: str, launcher: Recorder
) -> None:
    with pytest.raises(error, match=said):
        edt_hvd.report(**values)
    edt_hvd.report(seed=2**63 - 1, low=-(2**63), norm=math.inf)
    send_progress(7, 1, now=10.0)
    assert launcher.messages[0][1]["values"] == {"seed": 2**63 - 1, "low": -(2**63), "norm": math.inf}


def test_values_are_bounded_in_number_and_length(launcher: Recorder) -> None:
    edt_hvd.report(note="a" * (VALUES_BYTES - 100))
    with pytest.raises(ValueError, match=rf"report\(other=...\): .* JSON, {VALUES_BYTES} are allowed"):
        edt_hvd.report(other="\N{SNOWMAN}" * 100)
    edt_hvd.report(note="short")
    for step in range(1000):
        edt_hvd.report(**{f"loss_{step}": 0.5})
    with pytest.raises(ValueError, match="the same names every time"):
        edt_hvd.report(**{f"accuracy_{step}": 0.5 for step in range(1000)})
    assert len(encode(Progress(7, None, 2, reporting._values))) < VALUES_BYTES + 200 < MAX_LINE


def test_a_resize_is_reported_once_with_its_phases(launcher: Recorder) -> None:
    report = ResizeReport(3, previous_size=2, size=4, stopped_at=100.0)
    report.mark("rendezvous", 100.25)
    report.mark("sync", 100.75)
    for now in (101.0, 109.0):
        report.send_to(launcher, now)
    phases = {"rendezvous": 0.25, "sync": 0.5}
    resumed = {"generation": 3, "from": 2, "to": 4, "pause": 1.0, "phases": phases}
    assert launcher.messages == [("resumed", resumed)]
