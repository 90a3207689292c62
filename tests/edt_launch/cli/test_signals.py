import signal

import pytest

from edt_launch.cli.signals import ENDING, as_exits


@pytest.mark.parametrize("number", ENDING)
def test_signals_are_exits_meanwhile(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended, as_exits():
        signal.raise_signal(number)
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is before
