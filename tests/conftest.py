import gc
import os
import signal
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

import left_out

FIRST = (
    "tests/system/",
    "tests/examples/",
    "tests/browser/",
    "tests/edt_hvd/wmla/",
    "tests/edt_launch/agent/",
)
"""Folders whose tests wait for processes. They begin first: what is left for the end is short."""
BEGAN = time.monotonic()
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}

gc.disable()  # until all has been imported, which stays

# Tests run beside one another, and threads that wait for each other keep the processors busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# `--hypothesis-profile` chooses one. A busy machine is no reason to fail. The quick one takes the same
# examples each time, so that what has passed passes again; the full one looks for new ones.
settings.register_profile(
    "quick", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", parent=settings.get_profile("quick"), max_examples=500, derandomize=False)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--begin-within", type=float, metavar="SECONDS", help="skip the tests that have not begun by then"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    limit: float | None = item.config.getoption("--begin-within")
    if limit is not None and time.monotonic() - BEGAN > limit:
        pytest.skip(f"not begun within {limit:g} seconds: make test-all runs it")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    config.option.loadscopereorder = False  # else files begin by their numbers of tests
    return LoadFileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_collection_finish() -> None:
    """All that has been imported stays; looking through it takes most of the time of a collection."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    for line in left_out.advice([config.option.markexpr, *skipped]):
        terminalreporter.write_line(line)


@pytest.fixture(scope="module", autouse=True)
def _leftovers() -> Iterator[None]:
    """What a file's tests leave open fails in that file, not in whichever test Python finds it.

    What is still in use after them, as imported modules are, is not looked through after each other file.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    """A file's tests leave the environment as it was: processes that other tests start have it, too."""
    before = _variables()
    yield
    after = _variables()
    for name in after.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
    assert after == before


def _variables() -> dict[str, str]:
    """All but what pytest, torch and scikit-learn set by themselves, whatever a test does."""
    own = ("PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")
    return {name: value for name, value in os.environ.items() if name not in own}


@pytest.fixture(scope="session", autouse=True)
def _signals_as_in_a_terminal() -> None:
    """In the background and under nohup, pytest and all that tests start would ignore some signals."""
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
