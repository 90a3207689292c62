import pytest

from edt_hvd.wmla import process
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.job_dir import Start
from edt_hvd.wmla.process import Role
from edt_hvd.wmla.random_states import RandomStates


def test_other_roles_are_refused() -> None:
    with pytest.raises(WmlaError, match=r"EDT_WMLA_ROLE='clerk' is none of alone, driver, executor; unset"):
        process.role({"EDT_WMLA_ROLE": "clerk"})


@pytest.mark.parametrize("role", [Role.DRIVER, Role.EXECUTOR])
def test_processes_know_how_their_script_was_started(monkeypatch: pytest.MonkeyPatch, role: Role) -> None:
    monkeypatch.setattr(process, "_start", None)
    monkeypatch.setenv("EDT_WMLA_ROLE", role)
    with pytest.raises(WmlaError, match="unset EDT_WMLA_ROLE in processes that the script starts"):
        process.start()
    start = Start("/main.py", (), "/", 1, RandomStates.now())
    process.become(role, start)
    assert process.start() is start
    assert process.role() is role
