import signal

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

JOBS = ("tests/examples/", "tests/system/")
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


class JobsApart(LoadScopeScheduling):
    """Tests that start jobs run one at a time, in the order of their files, and the others beside them.

    As `--dist loadgroup` would have it, which finds no group in the names that pytest 9.2 collects.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "jobs" if nodeid.startswith(JOBS) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> JobsApart:
    return JobsApart(config, log)


@pytest.fixture(scope="session", autouse=True)
def _signals_as_in_a_terminal() -> None:
    """In the background and under nohup, pytest and all that tests start would ignore some signals."""
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
