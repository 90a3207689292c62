import io
import os
import stat
import threading
from pathlib import Path

import pytest

from edt_launch.service.data.sets import DataSets
from edt_launch.service.errors import ConflictError
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
        data = sets_in(tmp_path / "data", is_for_all=True)
        data.put("ann", "digits", archive(), is_replacing=False)
        data.put_file("ann", "digits", "deep/more", io.BytesIO(b"y"), is_replacing=False)
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


@pytest.mark.parametrize("note", [b"", b"[]", b'{"files": "many"}', b'{"files": 1, "size": null}'])
def test_a_folder_without_a_note_is_a_data_set_of_unknown_size(note: bytes, tmp_path: Path) -> None:
    (tmp_path / "users/ann/digits").mkdir(parents=True)
    (tmp_path / "users/ann/.edt-digits").write_bytes(note)
    data = sets_in(tmp_path)
    data.put_file("ann", "digits", "a", io.BytesIO(b"y"), is_replacing=False)
    (found,), is_complete = data.all()
    assert (found.path, found.files, found.size, is_complete) == ("users/ann/digits", None, None, True)
