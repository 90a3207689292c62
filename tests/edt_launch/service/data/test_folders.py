import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from edt_launch.service.data import folders, service
from edt_launch.service.db.store import Store
from edt_launch.service.errors import TooLargeError
from edt_launch.service.files.archives import packing, zipping
from lab import refused
from world import World


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(os.fsencode(path))


def names(content: bytes) -> set[str]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {one.partition("/")[2] for one in archive.getnames()} - {""}


def test_with_accounts_for_jobs_only_what_all_accounts_may_read_is_served(
    tmp_path: Path, store: Store
) -> None:
    world = World(tmp_path / "home", store, job_users="*=*")
    data = world.settings.data_folder
    make(data, "open/a", "open/secret", "shut/a", "pass/in/a")
    for path, mode in (("open/secret", 0o640), ("shut", 0o700), ("pass", 0o711)):
        (data / path).chmod(mode)
    top = world.bob.get("/data").json()
    assert (top["folders"], top["complete"]) == (["open"], False)
    inside = world.bob.get("/data?path=open").json()
    assert (inside["files"], inside["complete"]) == (["a"], False)
    assert world.bob.get("/data?path=pass/in").json()["complete"]
    assert world.bob.get("/data/file?path=pass/in/a").text == "pass/in/a"
    refused(world.bob.get("/data/file?path=open/secret"), 404, "not all accounts may read it")
    for path in ("/data?path=pass", "/data?path=shut", "/data/file?path=shut/a", "/data/archive?path=shut"):
        refused(world.bob.get(path), 422, "not all accounts may read it")
    for kind, read in (
        ("tar.gz", names),
        ("zip", lambda got: set(zipfile.ZipFile(io.BytesIO(got)).namelist())),
    ):
        packed = world.bob.get(f"/data/archive?path=&format={kind}")
        assert packed.headers["edt-complete"] == "false"
        assert {one.removeprefix("data/") for one in read(packed.content)} - {"open"} == {"open/a"}
    assert world.bob.get("/data/archive?path=pass/in").headers["edt-complete"] == "true"
    assert service.offered(world.context, world.store.accounts.user("bob")) == ["open"]
    data.chmod(0o700)
    refused(world.bob.get("/data/file?path=open/a"), 422, "not all accounts may read it")


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_what_becomes_a_link_after_it_was_listed_is_not_packed(world: World, kind: str) -> None:
    data = world.settings.data_folder
    make(data, "mine/inner/token", "mine/left")
    make(world.settings.home, "away/token")
    found = service.packed(world.context, "mine")
    if kind == "zip":
        members = zipping.members(((one.name, one.path) for one in found.members), found.reader)
    (data / "mine/inner").rename(data / "mine/old")
    (data / "mine/inner").symlink_to(world.settings.home / "away")
    if kind == "zip":
        content = b"".join(zipping.pack(members, found.reader, is_announced=False))
        archive = zipfile.ZipFile(io.BytesIO(content))
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "mine/inner/token": b"", "mine/left": b"mine/left",
        }  # fmt: skip
        again = zipping.members(((one.name, one.path) for one in found.members), found.reader)
        assert [one.name for one in again] == [b"mine/left"]
    else:
        packed = b"".join(packing.pack(found.members, found.reader))
        assert names(packed) == {"inner", "left"}


def test_a_folder_at_its_limit_is_packed_and_a_larger_one_is_not_looked_through(tmp_path: Path) -> None:
    make(tmp_path, "set/a", "set/deep/b", "notes/.edt-1", "notes/.edt-2", "notes/.edt-3", "notes/.edt-4")
    found, is_whole = folders.tree(tmp_path, "set", 3)
    assert ([one.path for one in found], is_whole) == (["set/a", "set/deep", "set/deep/b"], True)
    for path, most in (("set", 2), ("notes", 3)):
        with pytest.raises(TooLargeError, match="has more than"):
            folders.tree(tmp_path, path, most)
    os.makedirs(tmp_path / "set" / "/".join("x" * 100))
    assert len(folders.tree(tmp_path, "set", 200)[0]) == 103


@pytest.mark.parametrize(
    "name, is_shown",
    [
        ("1\u202f000", True), ("a\u00a0b", True), ("a\u3000b", True), ("日本", True),
        ("a\nb", False), ("a\u202eb", False), ("a\u2028b", False), ("a\udcffb", False), (".edt-x", False),
    ],
)  # fmt: skip
def test_names_without_control_characters_are_listed(name: str, is_shown: bool, tmp_path: Path) -> None:
    make(tmp_path, name)
    found = folders.listing(tmp_path, "")
    assert [one.name for one in found.files] == [name] * is_shown
    assert found.complete is (is_shown or name == ".edt-x")
