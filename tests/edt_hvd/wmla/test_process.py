import pytest

from edt_hvd.wmla import process
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.process import Role
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.training_dir import Start


@pytest.mark.parametrize(
    "environ, role",
    [
        ({}, Role.ALONE),
        ({"EDT_WMLA_ROLE": "driver"}, Role.DRIVER),
        ({"EDT_WMLA_ROLE": "executor"}, Role.EXECUTOR),
    ],
)
def test_the_environment_names_the_role(environ: dict[str, str], role: Role) -> None:
    assert process.role(environ) is role


def test_other_roles_are_refused() -> None:
    with pytest.raises(WmlaError, match=r"EDT_WMLA_ROLE='clerk' is none of alone, driver, executor; unset"):
        process.role({"EDT_WMLA_ROLE": "clerk"})


def test_a_driver_knows_how_its_script_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_start", None)
    monkeypatch.setenv("EDT_WMLA_ROLE", "driver")
    with pytest.raises(WmlaError, match="unset EDT_WMLA_ROLE in processes that the script starts"):
        process.driver_start()
    start = Start("/main.py", (), "/", RandomStates.now())
    process.become_driver(start)
    assert process.driver_start() is start
    assert process.role() is Role.DRIVER
