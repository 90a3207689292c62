"""The kinds of programs, as the launcher and the service find them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import UsageError
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.programs import kinds
from edt_launch.launcher.programs.horovodrun import UnderHorovodrun
from edt_launch.launcher.programs.script import Script
from simulated_hosts import SimulatedHosts


def own(**given: object) -> list[object]:
    """The own options of every kind."""
    return [
        kind.options(**{name: value for name, value in given.items() if name in kind.options.__annotations__})
        for kind in kinds.kinds()
    ]


def test_what_asks_for_no_kind_is_a_script() -> None:
    assert kinds.read(["true", "x"], RunOptions(), own()) == Script(["true", "x"])


def test_horovods_driver_takes_no_hosts_that_may_change(tmp_path: Path) -> None:
    plan = Plan(SizeLimits(1, 2), RunDir(tmp_path), source=SimulatedHosts())
    job: Any = SimpleNamespace(plan=plan)
    with pytest.raises(
        UsageError, match="the simulated cluster: --horovodrun takes hosts that do not change"
    ):
        UnderHorovodrun(["true"]).run(job)
