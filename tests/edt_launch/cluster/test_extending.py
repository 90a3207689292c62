"""The source of hosts in docs/how-to/extending.md works as it is written there."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edt_launch.cluster import sources
from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.launcher import command
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.program import Program

DOCS = Path(__file__).parents[3] / "docs/how-to/extending.md"


@pytest.fixture
def node_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The node file of a PBS job, with the example in the table."""
    (code,) = re.findall(r"```python\n(\"\"\"PBS.*?)```", DOCS.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "pbs"}
    exec(compile(code, str(DOCS), "exec"), names)
    monkeypatch.setattr(sources, "SOURCES", (*sources.SOURCES[:4], names["Pbs"], *sources.SOURCES[4:]))
    path = tmp_path / "nodes"
    path.write_text("n1\nn1\nn2\n")
    monkeypatch.setenv("PBS_NODEFILE", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def test_edt_launch_uses_it_and_says_so(node_file: Path, planned: list[tuple[Program, Plan]]) -> None:
    Path("train.py").touch()
    result = CliRunner().invoke(command.app, ["train.py"])
    assert result.exit_code == 0
    assert planned[0][1].allocation == Allocation(1, (HostSlots("n1", 2), HostSlots("n2", 1)))
    assert f"uses the hosts of the PBS job of {node_file} (3 slots): n1, n2" in result.stderr
