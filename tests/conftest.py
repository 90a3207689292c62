from pathlib import Path

import pytest

JOBS = {Path(__file__).parent / folder for folder in ("examples", "system")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start jobs run one at a time, the others beside them (`pytest -n 2 --dist loadgroup`)."""
    for item in items:
        if JOBS.intersection(item.path.parents):
            item.add_marker(pytest.mark.xdist_group("jobs"))
