import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edt_launch.cli.main import app
from edt_launch.service import command
from edt_launch.service.settings import Settings


def test_every_setting_is_an_option_once() -> None:
    options = {parameter.name for parameter in command.options()}
    assert options == set(Settings.model_fields)


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", "--home", str(tmp_path), "--port", "70000"])
    assert result.exit_code == 2
    assert "port: 70000" in result.output


@pytest.mark.parametrize("arguments", [["--help"], ["doctor", "--help"]])
def test_other_commands_import_nothing_of_the_service(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom edt_launch.cli.main import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'fastapi', 'sqlalchemy', 'uvicorn'} & sys.modules.keys()\nassert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
