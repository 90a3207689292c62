from pathlib import Path

from typer.testing import CliRunner

from edt_launch.cli.main import app
from edt_launch.service.app import command
from edt_launch.service.app.settings import Settings


def test_every_setting_is_an_option_once() -> None:
    options = {parameter.name for parameter in command.options()}
    assert options == set(Settings.model_fields)


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", "--home", str(tmp_path), "--port", "70000"])
    assert result.exit_code == 2
    assert "port: 70000" in result.output
