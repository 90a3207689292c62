import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from browser import browser
from edt_launch.service.data import service
from edt_launch.service.db.store import Store
from lab import made, refused
from world import World, post_job, tar


@pytest.mark.parametrize(
    "text, names",
    [
        ("{root}/users/ann/digits/train", "digits"),
        ("{real}/users/ann/digits", "digits"),
        ("--data={root}//users/ann/digits", "digits"),
        ("{root}/./users//ann/././/digits/", "digits"),
        ("{root}/users/bob/../ann/digits", "digits"),
        ('{{"a": "{root}//users/ann/digits", "b": "x/../../../y"}}', "digits"),
        ("{root}/users/ann/digits2", "digits2"),
        ("/elsewhere/users/ann/digits", ""),
        ("{root}2/users/ann/digits", ""),
    ],
)
def test_a_data_set_is_used_however_its_path_is_spelled(text: str, names: str, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("real")
    root, real = tmp_path / "data", tmp_path / "real"
    used = service.used_by(root, [("j1", text.format(root=root, real=real))])
    assert {name: ids for (owner, name), ids in used.items() if owner == "ann"} == {
        name: ["j1"] for name in names.split()
    }


def test_a_data_folder_that_is_a_link_or_missing(world: World) -> None:
    data = world.settings.data_folder
    made(world.ann.put("/datasets/ann/a", content=tar({"x": b"1"})))
    data.rename(data.with_name("real"))
    empty = {"path": "", "folders": [], "files": [], "details": [], "complete": True}
    assert world.ann.get("/data").json() == empty
    data.symlink_to("real")
    assert [one.name for one in service.packed(world.context, "").members] == [
        "data", "data/users", "data/users/ann", "data/users/ann/a", "data/users/ann/a/x",
    ]  # fmt: skip


def test_data_up_to_max_data_is_fetched(tmp_path: Path, store: Store) -> None:
    world = World(tmp_path / "home", store, max_result=1, max_data=4000, max_data_files=2)
    made(world.ann.put("/datasets/ann/a", content=tar({"x": b"12345", "y": b"1"})))
    for path in (
        "archive?path=users/ann/a",
        "archive?path=users/ann/a&format=zip",
        "file?path=users/ann/a/x",
    ):
        assert world.ann.get(f"/data/{path}").status_code == 200
    (world.settings.data_folder / "users/ann/a/x").write_bytes(bytes(4000))
    refused(world.ann.get("/data/archive?path=users/ann/a"), 413, "max_data, 4,000")


def test_a_form_is_as_large_as_the_disk_has_room_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    file = [("files", ("x", bytes(2**17)))]
    answer = browser(world, "ann").post("/data/upload", data={"name": "a"}, files=file)
    assert (answer.status_code, f"{2**16 + 1000:,} bytes" in answer.text) == (413, True)
    refused(post_job(world.ann, code=tar({"x": bytes(1001)})), 503, "full")
