import errno
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from edt_launch.service.data import sets, uploads
from edt_launch.service.db.store import Store
from edt_launch.service.experiments.records import SearchState
from edt_launch.service.jobs.states import State
from lab import made, refused
from world import World, tar

FILES = {"train/a.csv": b"1,2\n", "train/b.csv": b"3\n", "labels.txt": b"x"}
DIGITS = "/datasets/ann/digits"


def put(client: TestClient, path: str = DIGITS, content: bytes | None = None, **query: Any) -> Any:
    return client.put(path, content=tar(FILES) if content is None else content, params=query)


def found(world: World, path: str = "users/ann/digits") -> dict[str, bytes]:
    folder = world.settings.data_folder / path
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def left_over(world: World) -> list[Path]:
    """What uploads have left behind."""
    return list((world.settings.data_folder / uploads.UPLOADS).glob("*/*"))


def test_an_archive_becomes_a_data_set_which_everybody_reads(world: World) -> None:
    shown = made(put(world.ann))
    assert shown == {
        "owner": "ann", "name": "digits", "path": "users/ann/digits", "files": 3, "size": 7,
        "location": str(world.settings.data_folder / "users/ann/digits"),
        "time": world.clock.now, "used_by": [],
    }  # fmt: skip
    assert found(world) == FILES
    assert world.bob.get("/datasets").json() == {"datasets": [shown], "complete": True}
    listed = world.bob.get("/data?path=users/ann/digits/train").json()
    assert [(one["name"], one["size"]) for one in listed["details"]] == [("a.csv", 4), ("b.csv", 2)]
    assert world.bob.get("/data?path=users/ann").json()["files"] == []
    answer = world.bob.get("/data/file?path=users/ann/digits/train/a.csv")
    assert (answer.content, answer.headers["content-length"]) == (b"1,2\n", "4")
    packed = world.bob.get("/data/archive?path=users/ann/digits")
    with tarfile.open(fileobj=io.BytesIO(packed.content)) as archive:
        assert "digits/train/a.csv" in archive.getnames()
    packed = world.bob.get("/data/archive?path=users/ann/digits&format=zip")
    assert sorted(zipfile.ZipFile(io.BytesIO(packed.content)).namelist()) == [
        f"digits/{name}" for name in sorted(FILES)
    ]
    assert left_over(world) == []


def test_only_its_owner_and_administrators_change_it(world: World) -> None:
    made(put(world.ann))
    for answer in (
        put(world.bob, replace=1), put(world.bob, f"{DIGITS}/files/c.csv"), world.bob.delete(DIGITS),
        world.bob.delete(f"{DIGITS}/files/labels.txt"), put(world.bob, "/datasets/ann/other"),
    ):  # fmt: skip
        refused(answer, 403, "that is a data set of ann")
    refused(put(world.admin, "/datasets/nobody/x"), 404, "there is no user 'nobody'")
    assert found(world) == FILES
    assert world.admin.delete(f"{DIGITS}/files/labels.txt").status_code == 204
    assert world.bob.get(DIGITS).json()["files"] == 2
    assert world.admin.delete(DIGITS).status_code == 204
    refused(world.ann.get(DIGITS), 404, "there is no data set ann/digits")
    assert left_over(world) == []
    subjects = [(one["method"], one["path"]) for one in world.admin.get("/audit").json()["changes"]]
    assert subjects == [
        ("DELETE", f"/api/v1{DIGITS}"), ("DELETE", f"/api/v1{DIGITS}/files/labels.txt"),
        ("PUT", f"/api/v1{DIGITS}"),
    ]  # fmt: skip


def test_what_has_the_same_name_is_replaced_only_if_that_is_wanted(world: World) -> None:
    made(put(world.ann))
    refused(put(world.ann, content=tar({"new": b"1"})), 409, "there is a data set ann/digits already")
    refused(
        put(world.ann, f"{DIGITS}/files/labels.txt", b"y"), 409, "'labels.txt' in users/ann/digits already"
    )
    assert found(world) == FILES
    assert made(put(world.ann, f"{DIGITS}/files/labels.txt", b"yes", replace=1))["size"] == 9
    assert made(put(world.ann, f"{DIGITS}/files/deep/er/c.csv", b"4"))["files"] == 4
    refused(put(world.ann, f"{DIGITS}/files/deep", b"", replace=1), 409, "'deep'")
    assert made(put(world.ann, content=tar({"new": b"1"}), replace=1))["files"] == 1
    assert found(world) == {"new": b"1"}
    assert made(put(world.ann, "/datasets/ann/one/files/only.txt", b"12"))["size"] == 2
    assert left_over(world) == []


def test_what_jobs_use_is_neither_replaced_nor_deleted(world: World) -> None:
    made(put(world.ann))
    place = world.settings.data_folder / "users/ann/digits"
    jobs = [
        world.submit(world.ann, environment={"DATA_DIR": f"{place}/train"})["id"],
        world.submit(world.bob, command=["python", "train.py", f"--data={place}"])["id"],
    ]
    world.submit(world.bob, environment={"DATA_DIR": f"{place}2"})
    search = {"name": "mine", "metric": "loss", "parameters": {"x": {"values": [1]}}}
    spec = search | {"job": {"command": ["true"], "environment": {"DATA_DIR": str(place)}}}
    made(world.ann.post("/searches", data={"spec": json.dumps(spec)}))
    jobs.append(world.ann.get("/searches/mine").json()["id"])
    assert world.ann.get(DIGITS).json()["used_by"] == jobs
    for answer in (
        put(world.ann, replace=1), world.ann.delete(DIGITS), world.ann.delete(f"{DIGITS}/files/labels.txt"),
        put(world.ann, f"{DIGITS}/files/labels.txt", replace=1),
    ):  # fmt: skip
        refused(answer, 409, f"is used by {', '.join(jobs)}")
    made(put(world.ann, f"{DIGITS}/files/more.txt", b""))
    for job in jobs[:2]:
        world.go(job, State.STOPPED)
    world.store.experiments.update_search(jobs[2], state=SearchState.STOPPED)
    assert world.ann.delete(DIGITS).status_code == 204


def test_a_job_that_starts_during_an_upload_keeps_its_data(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack = sets.unpack

    def slowly(*arguments: Any) -> Any:
        place = world.settings.data_folder / "users/ann/digits"
        world.submit(world.ann, environment={"DATA_DIR": str(place)})
        return unpack(*arguments)

    made(put(world.ann))
    monkeypatch.setattr(sets, "unpack", slowly)
    refused(put(world.ann, content=tar({"new": b"1"}), replace=1), 409, "is used by")
    assert (found(world), left_over(world)) == (FILES, [])


@pytest.mark.parametrize(
    "path, content, status, said",
    [
        ("/datasets/ann/.x", tar(FILES), 422, "name"),
        (DIGITS, tar(FILES)[:-50], 422, "archive"),
        (DIGITS, tar({"x": bytes(2001)}), 413, "the data set has more than 2,000 bytes"),
        (DIGITS, tar({str(n): b"" for n in range(11)}), 413, "the data set has more than 10 files"),
        (DIGITS, os.urandom(3000), 413, "2,000 bytes"),
        (f"{DIGITS}/files/x", bytes(2001), 413, "2,000"),
        (f"{DIGITS}/files/a/%2e%2e/x", b"", 422, "leads outside"),
        (f"{DIGITS}/files/.edt-x", b"", 422, "no name of a file"),
    ],
    ids=[  # the bytes differ from process to process
        *("a hidden name", "cut off", "too large", "too many", "sent too much"),
        *("too large a file", "a file outside", "a name of ours"),
    ],
)
def test_what_cannot_be_stored_leaves_nothing(
    path: str, content: bytes, status: int, said: str, tmp_path: Path, store: Store
) -> None:
    world = World(tmp_path / "home", store, max_data=2000, max_data_files=10)
    refused(put(world.ann, path, content), status, said)
    assert world.ann.get("/datasets").json()["datasets"] == []
    assert left_over(world) == []


def test_a_full_or_broken_disk_is_told_and_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: BinaryIO, into: Path, limits: object) -> None:
        into.mkdir()
        (into / "half").write_bytes(b"x")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sets, "unpack", full)
    refused(put(world.ann), 503, "the disk of the data folder is full", "delete data sets")
    (world.settings.data_folder / "users").write_text("")
    monkeypatch.undo()
    refused(put(world.ann), 503, "has a file in the place of a folder")
    (world.settings.data_folder / "users").unlink()
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda _: SimpleNamespace(free=5))
    refused(put(world.ann), 503, "the disk of the data folder has 5 left")
    assert world.ann.get("/datasets").json()["datasets"] == []
    assert left_over(world) == []


def test_the_folder_of_data_is_listed_and_not_left(world: World) -> None:
    data = world.settings.data_folder
    (data / "mnist" / "raw").mkdir(parents=True)
    (data / "mnist" / "labels.gz").write_text("x")
    (data / "away").symlink_to(world.settings.home)
    (data / "mnist" / "link.gz").symlink_to(data / "mnist" / "labels.gz")
    os.mkfifo(data / "mnist" / "pipe")
    shown = world.bob.get("/data").json()
    assert shown == {"path": "", "folders": ["mnist"], "files": [], "details": [], "complete": True}
    shown = world.bob.get("/data?path=/mnist//").json()
    assert (shown["path"], shown["folders"], shown["files"]) == ("mnist", ["raw"], ["labels.gz"])
    for path in ("..", "mnist/../..", "away", "away/jobs", "mnist/labels.gz", "none", "a/" * 99):
        refused(world.bob.get("/data", params={"path": path}), 422, "source: ")


def test_nothing_leads_out_of_the_data_folder(world: World) -> None:
    made(put(world.ann))
    data = world.settings.data_folder
    (data / "users/ann/digits/out").symlink_to(world.settings.home)
    (data / "users/ann/digits/token").symlink_to(world.settings.paths.database)
    os.mkfifo(data / "pipe")
    for path in ("../edt.db", "users/ann/digits/out/edt.db"):
        refused(world.ann.get("/data/file", params={"path": path}), 422, "source")
    for path in ("users/ann/digits/token", "users/ann/.edt-digits", "pipe", "users", "none", ""):
        refused(world.ann.get("/data/file", params={"path": path}), 404, "is no file")
    refused(world.ann.get("/data/archive?path=.edt-uploads"), 422, "source")
    (data / uploads.UPLOADS / "other" / "half").mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(world.ann.get("/data/archive?path=").content)) as archive:
        assert not [name for name in archive.getnames() if "edt-" in name or "half" in name]
    refused(put(world.ann, f"{DIGITS}/files/out/x", b""), 422, "source")
    assert not (world.settings.home / "x").exists()


def test_a_user_with_data_sets_is_not_removed(world: World) -> None:
    made(put(world.ann))
    refused(world.admin.delete("/users/ann"), 409, "ann has data sets: digits")
    world.admin.delete(DIGITS)
    assert world.admin.delete("/users/ann").status_code == 204


def test_a_refused_file_leaves_no_folders(world: World) -> None:
    made(put(world.ann))
    path = quote("deep/" + "\u6f22" * 100)
    refused(put(world.ann, f"{DIGITS}/files/{path}", b""), 422, "the name is too long")
    assert found(world) == FILES
    assert not (world.settings.data_folder / "users/ann/digits/deep").exists()
