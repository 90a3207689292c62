import errno
import io
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edt_launch.service.data import notes, sets
from edt_launch.service.data.sets import DataSets
from edt_launch.service.errors import ConflictError, NotFoundError, UnavailableError
from edt_launch.service.files.archives.entry import ArchiveLimits
from world import tar

LIMITS = ArchiveLimits(10_000, 100)


def sets_in(root: Path, *, is_for_all: bool = False) -> DataSets:
    return DataSets(root, "pool", LIMITS, lambda: 1.0, is_for_all=is_for_all)


def archive(content: bytes = b"x") -> io.BytesIO:
    return io.BytesIO(tar({"folder/file": content}))


def test_of_two_uploads_of_a_name_at_once_one_is_stored(tmp_path: Path) -> None:
    data, start, refusals = sets_in(tmp_path), threading.Barrier(2), []

    def upload(content: bytes) -> None:
        start.wait()
        try:
            data.put("ann", "digits", archive(content), is_replacing=False)
        except ConflictError as error:
            refusals.append(error)

    threads = [threading.Thread(target=upload, args=(content,)) for content in (b"1", b"2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refusals) == 1
    assert (tmp_path / "users/ann/digits/folder/file").read_bytes() in (b"1", b"2")


def test_accounts_of_jobs_can_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        (tmp_path / "data").mkdir(0o755)
        (tmp_path / "data").chmod(0o755)
        data = sets_in(tmp_path / "data", is_for_all=True)
        data.put("ann", "digits", archive(), is_replacing=False)
        data.put_files("ann", "digits", [("deep/more", io.BytesIO(b"y"))], is_replacing=False)
    finally:
        os.umask(before)
    shown = [path for path in (tmp_path / "data").rglob("*") if ".edt-" not in str(path)]
    for path in (tmp_path / "data", *shown):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


def test_what_a_killed_service_was_receiving_is_deleted(tmp_path: Path) -> None:
    data = sets_in(tmp_path)
    with data.received() as file:
        file.write(b"half")
    (tmp_path / ".edt-uploads/pool/half/new").mkdir(parents=True)
    (tmp_path / ".edt-uploads/other/half").mkdir(parents=True)  # of another service
    data.settle()
    assert [path.name for path in (tmp_path / ".edt-uploads").glob("*/*")] == ["half"]
    assert (tmp_path / ".edt-uploads/other/half").is_dir()


class KilledError(BaseException):
    """The service ends here."""


@pytest.mark.parametrize(
    "moved, found", [([], (b"old", 1)), (["digits"], (b"old", 1)), (["digits", "new"], (b"new", None))]
)
def test_a_service_killed_while_it_replaces_a_data_set_loses_none(
    moved: list[str], found: tuple[bytes, int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, rename, left = sets_in(tmp_path), Path.rename, [*moved]
    data.put("ann", "digits", archive(b"old"), is_replacing=False)

    def killed(path: Path, target: Path) -> None:
        if left:
            assert left.pop(0) == path.name
            rename(path, target)
        if not left:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        patch.setattr(sets, "delete_folder", lambda _: None)  # who is killed tidies nothing up
        with pytest.raises(KilledError):
            data.put("ann", "digits", archive(b"new"), is_replacing=True)
    sets_in(tmp_path).settle()
    content = (tmp_path / "users/ann/digits/folder/file").read_bytes()
    assert (content, data.get("ann", "digits").files) == found  # type: ignore[union-attr]
    assert not list((tmp_path / ".edt-uploads/pool").iterdir())


@pytest.mark.parametrize("link", [".edt-uploads", ".edt-uploads/pool", ".edt-uploads/pool/left"])
def test_uploads_are_not_tidied_up_through_a_link(link: str, tmp_path: Path) -> None:
    (tmp_path / "away/pool/half").mkdir(parents=True)
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "away")
    sets_in(tmp_path).settle()
    assert (tmp_path / "away/pool/half").is_dir()


CHANGES: dict[str, Callable[..., Any]] = {
    "put": lambda data, **how: data.put("ann", "digits", archive(b"new"), is_replacing=True, **how),
    "put_files": lambda data, **how: data.put_files(
        "ann", "digits", [("folder/file", io.BytesIO(b"new"))], is_replacing=True, **how
    ),
    "delete": lambda data, **how: data.delete("ann", "digits", **how),
    "delete_file": lambda data, **how: data.delete_file("ann", "digits", "folder/file", **how),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_check_just_before_a_change_prevents_it(change: str, tmp_path: Path) -> None:
    def refuse() -> None:
        raise ConflictError("a job uses it")

    data = sets_in(tmp_path)
    data.put("ann", "digits", archive(), is_replacing=False)
    with pytest.raises(ConflictError, match="a job uses it"):
        CHANGES[change](data, check=refuse)
    assert (tmp_path / "users/ann/digits/folder/file").read_bytes() == b"x"
    assert not list((tmp_path / ".edt-uploads/pool").iterdir())


@pytest.mark.parametrize("link", ["users", "users/ann"])
def test_data_sets_behind_a_link_are_not_touched(link: str, tmp_path: Path) -> None:
    (tmp_path / "away/ann/digits").mkdir(parents=True)
    (tmp_path / "away/digits").mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "away")
    before = sorted(tmp_path.rglob("away/**/*"))
    data = sets_in(tmp_path)
    assert (data.names("ann"), data.all(), data.get("ann", "digits")) == ([], ([], True), None)
    for change in (*(CHANGES[name] for name in ("put", "put_files")), lambda data: data.put(
        "ann", "new", archive(), is_replacing=False
    )):  # fmt: skip
        with pytest.raises(ConflictError, match=f"^{link} in the data folder is a link"):
            change(data)
    with pytest.raises(NotFoundError):
        data.delete("ann", "digits")
    assert sorted(tmp_path.rglob("away/**/*")) == before


def test_a_data_folder_that_is_missing_is_not_made(tmp_path: Path) -> None:
    data = sets_in(tmp_path / "mount")
    with pytest.raises(UnavailableError, match="mount is missing"):
        data.put("ann", "digits", archive(), is_replacing=False)
    with pytest.raises(UnavailableError, match="mount is missing"), data.received():
        pass
    data.settle()
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_note_is_a_data_set_of_unknown_size(tmp_path: Path) -> None:
    (tmp_path / "users/ann/digits").mkdir(parents=True)
    (tmp_path / "users/ann/.edt-digits").write_bytes(b'{"files": 1, "size": null}')
    data = sets_in(tmp_path)
    data.put_files("ann", "digits", [("a", io.BytesIO(b"y"))], is_replacing=False)
    (found,), is_complete = data.all()
    assert (found.path, found.files, found.size, is_complete) == ("users/ann/digits", None, None, True)


def test_a_disk_that_fails_amid_several_files_is_told_with_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def failing(source: Any, target: Any, **how: Any) -> None:
        if target == "b":
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target, **how)

    data = sets_in(tmp_path)
    monkeypatch.setattr(os, "rename", failing)
    files = [(name, io.BytesIO(b"x")) for name in ("a", "b")]
    with pytest.raises(UnavailableError, match="1 of 2 files were stored, not 'b': Input/output error"):
        data.put_files("ann", "digits", files, is_replacing=False)
    assert [path.name for path in (tmp_path / "users/ann/digits").iterdir()] == ["a"]
    assert data.get("ann", "digits").files is None  # type: ignore[union-attr]


def test_a_change_is_made_though_its_numbers_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    data = sets_in(tmp_path)
    data.put("ann", "digits", archive(), is_replacing=False)
    monkeypatch.setattr(notes, "write_atomically", full)
    assert CHANGES["put"](data).files is None
    assert (tmp_path / "users/ann/digits/folder/file").read_bytes() == b"new"
    assert data.get("ann", "digits").files is None  # type: ignore[union-attr]
