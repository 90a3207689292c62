import pytest

from edt_launch.core.scripts import script_of


@pytest.mark.parametrize(
    "command, script",
    [
        ("train.py --lr 0.1", "train.py"),
        ("/usr/bin/python3.12 -u -X faulthandler -W ignore train.py", "train.py"),
        ("python -m train.py", None),
        ("python", None),
        ("-u train.py", "train.py"),
    ],
)
def test_the_script_of_a_command(command: str, script: str | None) -> None:
    assert script_of(command.split()) == script
