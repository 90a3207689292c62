import shutil
from collections.abc import Callable, Hashable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from browser import browser
from edt_launch.service.bus import Topic
from edt_launch.service.data import folders, service
from edt_launch.service.db.store import Store
from lab import made, refused
from world import World, post_job, tar


@pytest.mark.parametrize(
    "text, names",
    [
        ("{root}/users/ann/digits/train", "digits"),
        ("{real}/users/ann/digits", "digits"),
        ("--data={root}//users/ann/digits", "digits"),
        ("{root}/users//ann/./digits/", "digits"),
        ("{root}/./users/ann/././/digits", "digits"),
        ("{root}/users/bob/../ann/digits", "digits"),
        ("the data in {root}/users/ann/digits.", "digits digits."),
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


def test_offers_look_at_so_many_entries_in_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = world.store.accounts.user("ann")
    for name in ("a", "b"):
        made(world.ann.put(f"/datasets/ann/{name}", content=tar({"in/x": b"", "y": b""})))
    (world.settings.data_folder / "mnist").mkdir()
    monkeypatch.setattr(folders, "MAX_OFFERED", 3)
    assert service.offered(world.context, ann) == ["users/ann/a", "users/ann/a/in", "users/ann/b"]


def test_what_cannot_be_read_is_not_offered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        made(world.ann.put(f"/datasets/ann/{name}", content=tar({"in/x": b""})))
    opened = folders._open_folder

    def unreadable(root: Path, parts: list[str], *args: bool, **more: bool) -> int:
        if parts[-1:] == ["a"]:
            raise PermissionError(13, "Permission denied")
        return opened(root, parts, *args, **more)

    monkeypatch.setattr(folders, "_open_folder", unreadable)  # root may read everything
    ann = world.store.accounts.user("ann")
    assert service.offered(world.context, ann) == ["users/ann/b", "users/ann/b/in"]


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


class Threads:
    """Records who asks, and does the work at once."""

    def __init__(self) -> None:
        self.who: list[Hashable] = []

    async def run(self, who: Hashable, work: Callable[[], Any]) -> Any:
        self.who.append(who)
        return work()


def test_data_has_threads_of_its_own_and_tells_pages_of_changes(world: World) -> None:
    data, jobs = Threads(), Threads()
    object.__setattr__(world.context, "data_uploads", data)
    object.__setattr__(world.context, "uploads", jobs)
    file, page = [("files", ("z", b"1"))], browser(world, "ann")
    for number, change in enumerate(
        (
            lambda: world.ann.put("/datasets/ann/a", content=tar({"x": b""})),
            lambda: world.ann.put("/datasets/ann/a/files/y", content=b"1"),
            lambda: page.post("/data/upload", data={"name": "a"}, files=file),
            lambda: world.ann.delete("/datasets/ann/a/files/y"),
            lambda: world.ann.delete("/datasets/ann/a"),
        ),
        1,
    ):
        assert change().status_code in (201, 204, 303)
        assert world.bus.version(Topic.JOBS) == number
    assert (data.who, jobs.who) == (["ann"] * 3, [])


def test_a_form_is_as_large_as_the_disk_has_room_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    file = [("files", ("x", bytes(2**17)))]
    answer = browser(world, "ann").post("/data/upload", data={"name": "a"}, files=file)
    assert (answer.status_code, f"{2**16 + 1000:,} bytes" in answer.text) == (413, True)
    refused(post_job(world.ann, code=tar({"x": bytes(1001)})), 503, "full")
