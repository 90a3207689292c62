import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from asking import Asking, submitted
from edt_launch.service.files.archives import zipping
from no_files import KINDS, put
from played import ELOG, TEST_LINE, Player


def test_the_log_is_text_or_a_json_string_as_is_accepted(asking: Asking, player: Player) -> None:
    exec_id = submitted(asking.modern())["id"]
    path = f"/execs/{exec_id}/log"
    assert asking.modern().get(path).text == ""
    assert asking.classic().get(path).json() == ""
    player.start(exec_id)
    for client, accept, is_json in (
        (asking.modern(), "*/*", False),
        (asking.modern(), "application/json", True),
        (asking.classic(), "*/*", True),
        (asking.classic(), "text/plain", False),
    ):
        answer = client.get(path, headers={"accept": accept})
        assert (answer.json() if is_json else answer.text) == (ELOG if is_json else ELOG + TEST_LINE)
    assert asking.modern().get(f"{path}?logType=errlog").text.startswith("driver stderr 0")
    both = asking.modern().get(f"{path}?logType=outerrlog").text
    assert both.startswith(ELOG)
    assert "driver stderr 99" in both
    answer = asking.modern().get(f"{path}?logType=other")
    assert (answer.status_code, answer.text[:10]) == (400, "Error 400:")


def test_a_result_is_there_from_the_beginning(asking: Asking, player: Player) -> None:
    exec_id = submitted(asking.modern())["id"]
    player.start(exec_id)
    result = player.result(exec_id)
    (result.train / "model.pth").write_bytes(b"weights")
    (result.train / "secret").symlink_to("/etc/passwd")
    (result.model / "outside").symlink_to("/etc")
    (result.root / "val_dict_list.json").symlink_to("/etc/passwd")
    answer = asking.modern().get(f"/execs/{exec_id}/result")
    header = answer.headers["content-disposition"]
    assert " " not in header
    assert header.startswith("attachment;filename=dlpd-model-")
    assert header.endswith(f"{exec_id}-result.zip;size={len(answer.content)}")
    assert answer.headers["content-length"] == str(len(answer.content))
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["model/train/model.pth"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_place_of_a_log_is_empty_and_keeps_nobody_waiting(
    asking: Asking, player: Player, kind: str
) -> None:
    exec_id = submitted(asking.modern())["id"]
    player.start(exec_id)
    result = player.result(exec_id)
    (log,) = result.log.glob("driver-*")
    put(kind, log / "stdout")
    put(kind, result.log / "launcher.log")
    logs = f"/scheduler/applications/{exec_id}/driver/logs"
    for path in (f"/execs/{exec_id}/log", f"{logs}/launcherlog", f"{logs}/launcherlog?lastlines=3"):
        answer = asking.modern().get(path)
        assert (answer.status_code, answer.text) == (200, "")


def test_a_result_that_changes_meanwhile_is_not_taken_for_a_whole_one(
    asking: Asking, player: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    exec_id = submitted(asking.modern())["id"]
    player.start(exec_id)
    model = player.result(exec_id).train / "model.pth"
    model.write_bytes(b"weights")

    def members(files: Iterable[tuple[str, Path]]) -> list[zipping.Member]:
        found = listed(files)
        model.unlink()
        return found

    listed = zipping.members
    monkeypatch.setattr(zipping, "members", members)
    answer = asking.modern().get(f"/execs/{exec_id}/result")
    assert len(answer.content) < int(answer.headers["content-length"])
    assert not zipfile.is_zipfile(io.BytesIO(answer.content))
