"""Checkpoints to and from a host that does not see the output directory. They are whole, or not there.

A checkpoint is a folder with `manifest.json`, which lists its files with their sizes and SHA-256.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from edt_launch.agent.protocol import Put
from edt_launch.launcher.hosts.checkpoints import NAME
from edt_launch.launcher.hosts.transfers import TransferError, Transfers

MANIFEST = "manifest.json"

ARRIVING = ".arriving."
"""How folders of checkpoints begin that are not whole yet."""


async def fetch(transfers: Transfers, path: str, folder: Path, keep: int) -> Path:
    """Fetch the checkpoint at `path` into `folder`, of whose checkpoints the newest `keep` are kept.

    Returns:
        Where it is.

    Raises:
        TransferError: it cannot be fetched, or is damaged; nothing of it is left.
        OSError: it cannot be written; nothing of it is left.
    """
    name = Path(path).name
    if not NAME.fullmatch(name):
        raise TransferError(f"{path} is not named as checkpoints are")
    for left in folder.glob(f"{ARRIVING}*"):
        shutil.rmtree(left, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{ARRIVING}{name}"
    beside.mkdir()
    try:
        text = await transfers.fetch(f"{path}/{MANIFEST}")
        for file, (size, digest) in _files(text, path).items():
            with (beside / file).open("xb") as out:
                await _fetch_file(transfers, f"{path}/{file}", out, size, digest)
        with (beside / MANIFEST).open("xb") as out:
            out.write(text)
            await _sync(out)
        _put_in_place(beside, folder / name)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    _tidy(folder, keep)
    return folder / name


async def put_newest(transfers: Transfers, folder: Path, path: str) -> str | None:
    """Bring the newest whole checkpoint in `folder` to the folder at `path` of the host; returns its name.

    Raises:
        TransferError: the host cannot store it, or is lost.
    """
    for source in await asyncio.to_thread(_newest_first, folder):
        with contextlib.suppress(OSError, ValueError):  # it is damaged: the one before it
            text = (source / MANIFEST).read_bytes()
            files = await asyncio.to_thread(_checked, source, text)
            for file, (size, digest) in files.items():
                await transfers.put(Put(f"{path}/{source.name}/{file}", digest, size), source / file)
            manifest = Put(f"{path}/{source.name}/{MANIFEST}", hashlib.sha256(text).hexdigest(), len(text))
            await transfers.put(manifest, source / MANIFEST)
            return source.name
    return None


async def _fetch_file(transfers: Transfers, path: str, out: IO[bytes], size: int, digest: str) -> None:
    found, received = hashlib.sha256(), 0
    while received < size:
        data = await transfers.fetch(path, received)
        if not data:
            break
        out.write(data)
        found.update(data)
        received += len(data)
    if received != size or found.hexdigest() != digest:
        raise TransferError(f"{path} is not what its {MANIFEST} says")
    await _sync(out)


async def _sync(out: IO[bytes]) -> None:
    out.flush()
    await asyncio.to_thread(os.fsync, out.fileno())


def _files(text: bytes, path: object) -> Mapping[str, tuple[int, str]]:
    """The files that a manifest lists: their sizes and digests."""
    try:
        files = json.loads(text)["files"]
        listed = {name: (int(about["bytes"]), str(about["sha256"])) for name, about in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TransferError(f"{path}: its {MANIFEST} makes no sense") from None
    if any(
        name in ("", ".", "..", MANIFEST) or "/" in name or size < 0 for name, (size, _) in listed.items()
    ):
        raise TransferError(f"{path}: its {MANIFEST} names other files than a checkpoint has")
    return listed


def _checked(source: Path, text: bytes) -> Mapping[str, tuple[int, str]]:
    """The files of a checkpoint that is whole.

    Raises:
        ValueError: it is not.
        OSError: it cannot be read.
    """
    try:
        files = _files(text, source)
    except TransferError as error:
        raise ValueError(str(error)) from None
    for name, (size, digest) in files.items():
        with (source / name).open("rb") as file:
            if (
                os.fstat(file.fileno()).st_size != size
                or hashlib.file_digest(file, "sha256").hexdigest() != digest
            ):
                raise ValueError(f"{source / name} is damaged")
    return files


def _newest_first(folder: Path) -> list[Path]:
    try:
        found = [path for path in folder.iterdir() if NAME.fullmatch(path.name) and path.is_dir()]
    except OSError:
        return []
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")), reverse=True)


def _put_in_place(beside: Path, path: Path) -> None:
    if path.exists():
        old = path.with_name(f"{ARRIVING}old.{path.name}")
        path.rename(old)
        beside.rename(path)
        shutil.rmtree(old)
    else:
        beside.rename(path)


def _tidy(folder: Path, keep: int) -> None:
    for path in _newest_first(folder)[keep:]:
        shutil.rmtree(path, ignore_errors=True)
