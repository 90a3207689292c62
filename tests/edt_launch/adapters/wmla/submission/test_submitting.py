import io
import os
from pathlib import Path
from typing import Any

import pytest

from asking import nothing_is_left
from edt_launch.adapters.wmla.submission.request import ExecRequest
from edt_launch.adapters.wmla.submission.submitting import settle, submit
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.errors import ServiceError
from edt_launch.service.jobs.records import ExecRecord, JobRecord
from edt_launch.service.jobs.submission import Submitter
from world import World, tar

ANN = UserRecord("ann")
CODE = {"m/main.py": b"", "m/util.py": b""}


def sent(
    world: World, args: str, files: dict[str, bytes] | None = None, user: UserRecord = ANN, **more: Any
) -> tuple[ExecRecord, JobRecord]:
    extra = more.pop("extra", None)
    request = ExecRequest(f"--exec-start edtPyTorch {args}", **more)
    names = submit(world.context, user, request, io.BytesIO(tar(files or CODE)), extra)
    assert names.job is not None
    return names, world.store.jobs.get(names.job)


def test_the_job_knows_its_names(world: World) -> None:
    names, job = sent(world, "--model-dir m --lr 1 --msd-env A=1 --msd-env DLI_EXECID=forged")
    assert (names.id, names.app) == ("wmla-1", "wmla-1")
    told = job.environment
    assert (told["DLI_EXECID"], told["APP_ID"], told["EDT_WMLA_DRIVER"]) == ("wmla-1", "wmla-1", names.driver)
    assert (told["A"], told["EDT_WMLA_SUBMIT_USER"]) == ("1", "ann")
    assert told["DLI_CS_DATASTORE_META"] == "type=fs"
    assert world.store.execs.find(names.driver) == names
    assert (job.command, job.min, job.max) == (("main.py", "--lr", "1"), 1, 4)
    assert world.files(job.id).output.model.is_dir()


@pytest.mark.parametrize(
    "args, files, directory",
    [
        ("--model-dir m", CODE, "m"),
        ("--model-dir elsewhere", CODE, "m"),
        ("--model-dir m", {"main.py": b""}, "."),
        ("--model-dir m", {"a/main.py": b"", "m/main.py": b""}, "m"),
    ],
)
def test_the_script_runs_where_the_model_directory_is(
    world: World, args: str, files: dict[str, bytes], directory: str
) -> None:
    assert sent(world, args, files)[1].directory == directory


def test_data_is_below_the_data_folder(world: World) -> None:
    data = world.settings.data_folder
    for text, folder in (("", data), ("data_path=a/b", data / "a/b"), ("data_path=a/../c", data / "c")):
        _, job = sent(world, f"--model-dir m --cs-datastore-meta type=fs,{text}")
        assert job.data_dir == str(folder)
        assert folder.is_dir()
    assert job.environment["DLI_DATA_FS"] == str(data)


@pytest.mark.parametrize(
    "args, said",
    [
        ("--model-main missing.py", "--model-main 'missing.py': there is no such file in what was sent"),
        ("--model-main ../main.py", "leads out of the model directory"),
        ("--cs-datastore-meta data_path=out/x", "is not inside the data folder"),
        ("--numWorker 65536 --workerDeviceNum 65536", "max"),
    ],
)
def test_what_is_refused_leaves_nothing(world: World, args: str, said: str) -> None:
    data = world.settings.data_folder
    (data / "out").symlink_to("/tmp")
    (data / "file").touch()
    with pytest.raises((ServiceError, ValueError), match=said):
        sent(world, args, {**CODE, "m/util.txt": b""})
    assert nothing_is_left(world)


def test_additional_files_do_not_follow_links(world: World, tmp_path: Path) -> None:
    from world import member, tar_of

    link = member("m/config.json", type=b"2", linkname="main.py")
    code = tar_of([(member("m/main.py", size=3), b"old"), (link, b"")])
    names = submit(
        world.context, ANN, ExecRequest("--exec-start PyTorch"), io.BytesIO(code), {"config.json": b"new"}
    )
    folder = world.files(names.job or "").code / "m"
    assert (folder / "main.py").read_bytes() == b"old"
    assert not os.path.islink(folder / "config.json")


class KilledError(BaseException):
    pass


def killed(*_: object) -> None:
    raise KilledError


def send(world: World) -> None:
    request = ExecRequest("--exec-start PyTorch --model-dir m")
    submit(world.context, UserRecord("ann"), request, io.BytesIO(tar({"m/main.py": b""})))


def test_names_find_the_job_that_was_made_for_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    send(world)
    monkeypatch.setattr(world.store.execs, "assign", killed)
    with pytest.raises(KilledError):
        send(world)
    monkeypatch.undo()
    (known, lost) = world.store.jobs.page().jobs
    assert world.store.execs.find(lost.environment["DLI_EXECID"]) is None
    settle(world.store)
    for job in (known, lost):
        names = world.store.execs.find(job.environment["DLI_EXECID"])
        assert names is not None
        assert names.job == job.id


def test_names_without_a_job_are_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Submitter, "submit", killed)
    monkeypatch.setattr(world.store.execs, "release", lambda _: None)
    with pytest.raises(KilledError):
        send(world)
    monkeypatch.undo()
    assert [names.number for names in world.store.execs.reserved()] == [1]
    settle(world.store)
    assert world.store.execs.reserved() == []
