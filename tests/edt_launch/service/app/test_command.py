from edt_launch.service.app import command
from edt_launch.service.app.settings import Settings


def test_every_setting_is_an_option_once() -> None:
    options = {parameter.name for parameter in command.options()}
    assert options == set(Settings.model_fields)
