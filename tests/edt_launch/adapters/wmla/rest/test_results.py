import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from asking import Asking, submitted
from edt_launch.service.files.archives import zipping
from no_files import KINDS, put
from played import Player


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
