"""The units for systemd in launch/deploy."""

import configparser
import shlex
from pathlib import Path

import pytest

from edt_launch.service.app.settings import Settings

UNITS = sorted((Path(__file__).parents[4] / "launch" / "deploy" / "systemd").glob("*.service"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_the_service_with_options_that_it_has_and_lets_jobs_live_on(path: Path) -> None:
    unit = configparser.RawConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(path.read_text())
    program, command, *words = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, command) == ("edt", "serve")
    options = dict(zip(words[::2], words[1::2], strict=True))
    fields = {name.removeprefix("--").replace("-", "_"): value for name, value in options.items()}
    assert Settings(**fields).job_users == fields.get("job_users")  # type: ignore[arg-type]
    assert unit["Service"]["KillMode"] == "process"
