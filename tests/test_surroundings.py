"""The tests find what they need wherever they are started."""

import signal
import subprocess
import sys

IN_THE_BACKGROUND = ["sh", "-c", 'trap "" HUP INT QUIT TERM; exec "$@"', "sh"]


def test_no_signal_is_ignored():
    ignored = {number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN}
    assert ignored <= {signal.SIGPIPE, signal.SIGXFSZ}  # by Python itself
    assert callable(signal.getsignal(signal.SIGINT))


def test_none_is_where_the_starter_ignored_some():
    test = f"{__file__}::{test_no_signal_is_ignored.__name__}"
    command = [*IN_THE_BACKGROUND, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", test]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
