import errno
import gzip
import io
import os
import shutil
import stat
import struct
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.service.errors import ArchiveError, ServiceError, TooLargeError
from edt_launch.service.files.archives.archive import unpack
from edt_launch.service.files.archives.entry import ArchiveLimits
from world import member, tar, tar_of

LIMITS = ArchiveLimits(size=2**20, count=100)
FILES = {"train.py": b"print()\n", "lib/data/x.bin": os.urandom(70_000), "empty": b""}


def zip_(files: dict[str, bytes]) -> bytes:
    return zip_of([(zipfile.ZipInfo(name), content) for name, content in files.items()])


def zip_of(members: list[tuple[zipfile.ZipInfo, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for info, content in members:
            info.compress_type = compression
            archive.writestr(info, content)
    return buffer.getvalue()


def zip_link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=kind, linkname=target), b""


def file(name: str, content: bytes = b"x", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, size=len(content), mode=mode), content


def refused(data: bytes, folder: Path, limits: ArchiveLimits = LIMITS) -> ServiceError:
    """The refusal of an archive, of which nothing must remain, and which must have touched nothing else."""
    into = folder / "in" / "code"
    victim = folder / "victim"
    victim.write_text("untouched")
    before = sorted(folder.rglob("*"))
    with pytest.raises(ServiceError) as caught:
        unpack(io.BytesIO(data), into, limits)
    assert sorted(folder.rglob("*")) == before
    assert victim.read_text() == "untouched"
    return caught.value


@pytest.mark.parametrize("data", [tar(FILES, "w"), tar(FILES), zip_(FILES)], ids=["tar", "tar.gz", "zip"])
def test_files_come_out_as_they_went_in(data: bytes, tmp_path: Path) -> None:
    into = tmp_path / "a folder" / "code"
    unpack(io.BytesIO(data), into, LIMITS)
    assert {
        str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()
    } == FILES


def test_of_a_files_mode_only_whether_it_runs_is_kept(tmp_path: Path) -> None:
    members = [file("run.sh", mode=0o6711), file("data", mode=0o000)]
    unpack(io.BytesIO(tar_of(members)), tmp_path / "code", LIMITS)
    modes = [(tmp_path / "code" / name).stat().st_mode & 0o7711 for name in ("run.sh", "data")]
    assert modes == [0o711, 0o600]


def test_links_inside_are_made(tmp_path: Path) -> None:
    links = [link("lib/up", "../train.py"), link("same", "train.py", tarfile.LNKTYPE), link("dot", ".")]
    unpack(io.BytesIO(tar_of([*links, file("train.py")])), tmp_path / "code", LIMITS)
    assert (tmp_path / "code/lib/up").read_bytes() == b"x"
    assert (tmp_path / "code/same").samefile(tmp_path / "code/train.py")
    data = zip_of([zip_link("lib/up", "../train.py"), (zipfile.ZipInfo("train.py"), b"x")])
    unpack(io.BytesIO(data), tmp_path / "zip", LIMITS)
    assert os.readlink(tmp_path / "zip/lib/up") == "../train.py"


OUTSIDE = {
    "absolute": [file("/tmp/victim")],
    "dots": [file("../victim")],
    "link to absolute": [link("a", "/etc")],
    "link to dots": [link("a", "../victim")],
    "link through a link": [link("d/l", ".."), link("m", "d/l/..")],
    "file through a link": [link("a", ".."), file("a/victim")],
    "link over a file": [file("a"), link("a", "b")],
    "hard link to dots": [link("a", "../victim", tarfile.LNKTYPE)],
    "hard link to a link": [link("a", "../victim"), link("b", "a", tarfile.LNKTYPE)],
    "character device": [(member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b"")],
    "file and folder": [file("a"), file("a/b")],
    "path too long": [file("a/" * 3000 + "b")],
}


OUTSIDE_ZIP = {
    "absolute in zip": [(zipfile.ZipInfo("/victim"), b"x")],
    "dots in zip": [(zipfile.ZipInfo("../victim"), b"x")],
    "link in zip": [zip_link("a", "../victim")],
}


@pytest.mark.parametrize("name", [*OUTSIDE, *OUTSIDE_ZIP])
def test_what_would_not_stay_inside_is_refused(name: str, tmp_path: Path) -> None:
    data = zip_of(OUTSIDE_ZIP[name]) if name in OUTSIDE_ZIP else tar_of([file("first"), *OUTSIDE[name]])
    assert isinstance(refused(data, tmp_path, ArchiveLimits(2**20, 10_000)), ArchiveError)


def test_long_ways_of_links_are_refused_before_they_are_followed(tmp_path: Path) -> None:
    name = refused(tar_of([file("d/x"), link("a", "d/../" * 15 + "d")]), tmp_path)
    assert "'a' is a link along 31 names, more than 30" in name.detail
    assert "more than 1,024 bytes" in refused(tar_of([link("a", "b" * 1025)]), tmp_path).detail
    unpack(io.BytesIO(tar_of([file("d/x"), link("a", "d/../" * 14 + "d")])), tmp_path / "code", LIMITS)
    assert (tmp_path / "code" / "a" / "x").read_bytes() == b"x"


BOMBS = {
    "tar.gz": tar({"zeros": bytes(2**21)}),
    "zip": zip_({"zeros": bytes(2**21)}),
    "many files": tar({f"{n}": b"" for n in range(200)}),
    "large files together": tar({f"{n}": bytes(2**18) for n in range(9)}),
    "zeros after the end": gzip.compress(tar({"a": b""}, "w") + bytes(2**22)),
}


@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused(data: bytes, tmp_path: Path) -> None:
    assert isinstance(refused(data, tmp_path), TooLargeError)


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    header = member("x", type=tarfile.XHDTYPE, size=2**30).tobuf(tarfile.USTAR_FORMAT)
    assert "header" in refused(gzip.compress(header + bytes(2**20)), tmp_path).detail
    name = member("x", type=tarfile.GNUTYPE_LONGNAME, size=2**30).tobuf(tarfile.GNU_FORMAT)
    assert "header" in refused(gzip.compress(name + bytes(2**20)), tmp_path).detail


def pax(records: bytes) -> bytes:
    """A header of records that are about the header after it."""
    header = member("x", type=tarfile.XHDTYPE, size=len(records)).tobuf(tarfile.USTAR_FORMAT)
    return header + records + bytes(-len(records) % tarfile.BLOCKSIZE)


def gnu_sparse_map(blocks: int) -> bytes:
    """A sparse file whose map goes on and on, in the format of old versions of GNU tar."""
    header = bytearray(member("x").tobuf(tarfile.GNU_FORMAT))
    header[156:157], header[482] = tarfile.GNUTYPE_SPARSE, 1
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[: tarfile.BLOCKSIZE])
    block = (b"00000007000\0" + b"00000000777\0") * 21 + b"\1" + bytes(7)
    return bytes(header) + block * blocks


HEADERS = {
    "map in blocks": gnu_sparse_map(5000),
    "records": (pax(b"8 a=bcd\n" * 2**13) + member("x").tobuf()) * 100,
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_headers_that_take_long_or_much_memory_are_refused(headers: bytes, tmp_path: Path) -> None:
    error = refused(gzip.compress(headers + bytes(1024)), tmp_path, ArchiveLimits(2**30, 100))
    assert "bytes of headers" in error.detail


def test_a_zip_that_lies_about_its_directory_is_refused(tmp_path: Path) -> None:
    data = bytearray(zip_(FILES))
    at = data.rfind(b"PK\x05\x06")
    struct.pack_into("<L", data, at + 12, 2**31)
    refused(bytes(data), tmp_path)
    assert "zip64" in refused(b"PK\x03\x04" + b"PK\x06\x07" + bytes(16) + zip_(FILES)[at:], tmp_path).detail


def test_a_zip64_is_unpacked_and_counted_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    data = zip_(FILES)
    assert b"PK\x06\x06" in data
    unpack(io.BytesIO(data), tmp_path / "code", LIMITS)
    assert (tmp_path / "code/train.py").read_bytes() == FILES["train.py"]
    shutil.rmtree(tmp_path / "code")
    error = refused(data, tmp_path, ArchiveLimits(2**20, 2))
    assert "3 entries, more than 2" in error.detail
    elsewhere = bytearray(data)
    struct.pack_into("<Q", elsewhere, data.rfind(b"PK\x06\x07") + 8, 0)  # another record than the one there
    assert "zip64" in refused(bytes(elsewhere), tmp_path).detail


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_what_is_cut_short_is_refused(kind: str, tmp_path: Path) -> None:
    data = {"tar": tar(FILES, "w"), "tar.gz": tar(FILES), "zip": zip_(FILES)}[kind]
    for size in (len(data) // 2, len(data) - 12_000):
        refused(data[:size], tmp_path)


SMALL = {"a/b": b"x" * 100, "c": b""}
WHOLE = {"tar": tar(SMALL, "w"), "tar.gz": tar(SMALL), "zip": zip_(SMALL)}


@given(st.binary(max_size=20), st.sampled_from(sorted(WHOLE)), st.integers(0, 3000))
def test_whatever_comes_is_unpacked_or_refused(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, kind: str, at: int
) -> None:
    into = tmp_path_factory.mktemp("code") / "code"
    data = WHOLE[kind]
    broken = data[:at] + noise + data[at + len(noise) :]
    try:
        unpack(io.BytesIO(broken), into, LIMITS)
    except ServiceError:
        assert not into.exists()
    else:
        assert into.is_dir()


def test_folders_may_be_a_hundred_deep(tmp_path: Path) -> None:
    for kind in (tar, zip_):
        unpack(io.BytesIO(kind({"d/" * 99 + "x": b""})), tmp_path / kind.__name__, LIMITS)
        error = refused(kind({"d/" * 2000 + "x": b""}), tmp_path, ArchiveLimits(2**20, 5000))
        assert isinstance(error, ArchiveError)
        assert "2001 names within each other, more than 100" in str(error)


def test_links_to_links_without_end_are_refused(tmp_path: Path) -> None:
    chain = [link(f"l{number}", f"l{number + 1}") for number in range(3000)]
    error = refused(tar_of(chain), tmp_path, ArchiveLimits(2**20, 5000))
    assert "is a link to more than 40 links" in str(error)


@pytest.mark.parametrize(
    "data", [tar({"x": bytes(9), "y": b"1"}), zip_({"x": bytes(10)})], ids=["tar", "zip"]
)
def test_what_does_not_fit_on_the_disk_is_refused_before_it_is_written(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=9))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        unpack(io.BytesIO(data), tmp_path / "in/code", LIMITS)
    assert not (tmp_path / "in/code").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    unpack(io.BytesIO(data), tmp_path / "in/code", LIMITS)
