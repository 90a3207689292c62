import pytest

from edt_hvd.wmla.executor import ToDriver, main
from edt_hvd.wmla.results import Begun, EpochDone, Message, MiniBatch, StepDone


class Recording:
    """A sender that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.finished = False

    def send(self, message: Message) -> None:
        self.sent.append(message)

    def finish(self) -> None:
        self.finished = True


def test_who_takes_over_tells_what_the_driver_may_have_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    leads = False
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: leads)
    sender = Recording()
    outlet = ToDriver(sender)  # type: ignore[arg-type]
    plan = Begun(1, 1, 1)
    outlet.tell(plan)
    outlet.tell(EpochDone(0))
    assert sender.sent == []
    leads = True
    outlet.tell(EpochDone(1))
    outlet.tell(EpochDone(2))
    assert sender.sent == [plan, EpochDone(0), EpochDone(1), EpochDone(2)]
    assert not sender.finished
    leads = False
    outlet.tell(EpochDone(3))
    assert sender.finished


def test_what_is_kept_is_bounded_by_its_mini_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    leads = False
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: leads)
    sender = Recording()
    outlet = ToDriver(sender)  # type: ignore[arg-type]
    done = [StepDone(0, step, 1, (MiniBatch(1, 0.0, 0.0),) * 30000) for step in range(4)]
    for message in done[:3]:
        outlet.tell(message)
    leads = True
    outlet.tell(done[3])
    assert sender.sent == done[2:]


def test_the_command_line_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["executor"])
    with pytest.raises(SystemExit, match=r"usage: .* edt_hvd\.wmla\.executor PAYLOAD"):
        main()
