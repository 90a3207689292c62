import gc
import os
import signal
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

APART = tuple(
    f"tests/system/test_{name}.py"
    for name in (
        "attacks",
        "disk_and_clock",
        "faults",
        "leaving",
        "pool",
        "pool_killed",
        "processes",
        "resizes",
        "wmla_pool",
        "wmla_sharing",
    )
)
"""Tests of jobs that look at how long something takes."""
BY_PROGRAM = "tests/system/test_wmla_programs.py"
LONG = (
    "tests/system/test_horovodrun.py",
    "tests/system/test_wmla_programs.py",
    "tests/system/test_exact.py",
    "tests/system/test_patterns.py",
    "tests/system/test_recipes.py",
    "tests/system/test_wmla_stateful.py",
    "tests/system/test_wmla_failures.py",
    "tests/edt_launch/service/api/test_description.py",
    "tests/edt_hvd/reduction/test_error_bound.py",
    "tests/edt_launch/agent/test_agent.py",
    "tests/edt_hvd/wmla/test_driving.py",
    "tests/system/test_failures.py",
    "tests/system/test_restarts.py",
    "tests/edt_launch/service/test_running.py",
    "tests/system/test_hypersearch.py",
    "tests/examples/test_digits.py",
    "tests/system/test_verify.py",
    "tests/edt_hvd/wmla/test_script.py",
    "tests/edt_launch/service/api/test_access.py",
    "tests/browser/test_jobs.py",
    "tests/system/test_launchers.py",
    "tests/system/test_allocation_file.py",
    "tests/system/test_discovery.py",
    "tests/edt_hvd/wmla/test_executor.py",
    "tests/system/test_wmla_frameworks.py",
    "tests/system/test_wmla_launch.py",
    "tests/system/test_pausing.py",
    "tests/system/test_warm.py",
    "tests/system/test_ssh.py",
    "tests/system/test_progress.py",
    "tests/system/test_programs.py",
    "tests/examples/test_mnist.py",
    "tests/examples/test_horovod_port.py",
    "tests/edt_launch/jobs/test_loop.py",
    "tests/edt_launch/adapters/wmla/hypersearch/test_controller.py",
    "tests/edt_launch/launcher/test_job.py",
    "tests/edt_hvd/world/test_determinism.py",
    "tests/edt_launch/adapters/wmla/hypersearch/test_routes.py",
    "tests/edt_launch/adapters/wmla/rest/test_dlicmd.py",
    "tests/edt_launch/allocator/test_decide.py",
    "tests/edt_launch/jobs/test_machine.py",
    "tests/edt_launch/tools/demo/test_plot.py",
)
"""Other files that take long, the longest first."""
BEGAN = time.monotonic()
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
        if file in APART:
            return "apart"
        return nodeid.rpartition("[")[2] if file == BY_PROGRAM else file


def _place(file: str) -> int:
    """When a file's tests are to begin, relative to others'."""
    if file in APART:
        return -1
    return LONG.index(file) if file in LONG else len(LONG)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--begin-within", type=float, metavar="SECONDS", help="skip the tests that have not begun by then"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    limit: float | None = item.config.getoption("--begin-within")
    if limit is not None and time.monotonic() - BEGAN > limit:
        pytest.skip(f"not begun within {limit:g} seconds: make test-all runs it")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LongestFirst:
    return LongestFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    """All that has been imported stays; looking through it takes most of the time of a collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _leftovers() -> Iterator[None]:
    """What a file's tests leave open fails in that file, not in whichever test Python finds it."""
    yield
    gc.collect()


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
