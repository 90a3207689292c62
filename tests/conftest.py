import gc
import signal

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

JOBS = ("tests/examples/", "tests/system/")
BY_PROGRAM = "tests/system/test_wmla_programs.py"
BESIDE_OTHERS = (
    BY_PROGRAM,
    "tests/system/test_exact.py",
    "tests/system/test_verify.py",
    "tests/system/test_launchers.py",
    "tests/examples/",
    "tests/system/test_torn_worlds.py",
    "tests/system/test_control.py",
)
"""Tests of jobs in which no clock counts."""
LONG = (
    "tests/edt_hvd/wmla/test_driving.py",
    "tests/edt_hvd/reduction/test_error_bound.py",
    "tests/edt_hvd/wmla/test_script.py",
    "tests/edt_launch/jobs/test_loop.py",
    "tests/edt_launch/service/api/test_access.py",
    "tests/edt_hvd/wmla/test_fabric_model.py",
    "tests/edt_hvd/wmla/handing/test_modules.py",
    "tests/edt_launch/service/test_running.py",
    "tests/edt_hvd/reduction/test_optimizer.py",
    "tests/edt_launch/service/api/test_description.py",
    "tests/edt_launch/allocator/test_decide.py",
    "tests/edt_hvd/wmla/handing/test_installed.py",
    "tests/edt_launch/tools/demo/test_plot.py",
)
"""Other files that take long, the longest first."""
JOBS_APART, LAST = -1, len(LONG) + 1
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}

# `--hypothesis-profile` chooses one. A busy machine is no reason to fail.
settings.register_profile(
    "quick", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", parent=settings.get_profile("quick"), max_examples=2000)
settings.load_profile("quick")


class LongestFirst(LoadScopeScheduling):
    """Hands out files of tests in the order of `_place`, to whichever process has nothing left to do.

    Tests that look at how long jobs take are one file for it: they run one at a time.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False  # else by their numbers of tests
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if _place(file) == JOBS_APART:
            return "jobs"
        return nodeid.rpartition("[")[2] if file == BY_PROGRAM else file


def _place(file: str) -> int:
    """When a file's tests are to begin, relative to others'."""
    if file.startswith(JOBS):
        return LAST if file.startswith(BESIDE_OTHERS) else JOBS_APART
    return LONG.index(file) if file in LONG else len(LONG)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LongestFirst:
    return LongestFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    """All that has been imported stays; looking through it takes most of the time of a collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _signals_as_in_a_terminal() -> None:
    """In the background and under nohup, pytest and all that tests start would ignore some signals."""
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
