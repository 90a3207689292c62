import pytest

from asking import Asking, submitted
from edt_launch.service.database.jobs import NoSuchJobError


@pytest.mark.parametrize(
    "method, path", [("POST", "/execs/{}/stop"), ("PUT", "/scheduler/applications/{}/stop")]
)
def test_what_is_deleted_while_it_is_stopped_is_not_found(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    exec_id = submitted(asking.modern())["id"]

    def set_wanted(job: str, _: object) -> None:
        raise NoSuchJobError(job)

    monkeypatch.setattr(asking.world.store.jobs, "set_wanted", set_wanted)
    answer = asking.modern().request(method, path.format(exec_id))
    assert (answer.status_code, answer.text) == (400, f"Error 400: Execution ID {exec_id!r} not found.\n")
