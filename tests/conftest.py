import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

JOBS = ("tests/examples/", "tests/system/")


class JobsApart(LoadScopeScheduling):
    """Tests that start jobs run one at a time, in the order of their files, and the others beside them.

    As `--dist loadgroup` would have it, which finds no group in the names that pytest 9.2 collects.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "jobs" if nodeid.startswith(JOBS) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> JobsApart:
    return JobsApart(config, log)
