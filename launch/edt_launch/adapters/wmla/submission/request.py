"""A submission as it comes: its argument string, what the form field `data` adds to it, and its files."""

import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from edt_launch.adapters.wmla.submission.args import Arguments, ArgumentsError, parse, positive
from edt_launch.service.errors import InvalidError, TooLargeError

ARCHIVES = (".tar", ".tar.gz", ".tgz")

UNNAMED_ARCHIVE = "model.tar"
"""What an archive is called that was sent without a name."""

LARGEST = 2**24  # bytes of all files beside the model

NAME_LIMIT = 200  # bytes of a file's name


@dataclass(frozen=True)
class ExecRequest:
    """What somebody wants to have run.

    Attributes:
        args: the argument string as it came.
        group: name of an instance group, `sigName`; None for a submission in the manner of 2.x.
        data: the form field `data`, JSON: `args`, `hardwareSpec`, `dataSource`; empty without it.
        file_name: what the uploaded model is called; empty without one.
    """

    args: str
    group: str | None = None
    data: str = ""
    file_name: str = ""

    @property
    def main(self) -> str:
        """The script that it names; empty if it names none, or makes no sense."""
        try:
            return read(self)[1].main
        except ArgumentsError:
            return ""


def read(request: ExecRequest) -> tuple[str, Arguments]:
    """The argument string that counts, and what the whole submission says; its options come before `data`.

    Raises:
        ArgumentsError: it makes no sense; the message names the option or field.
    """
    data = _json("data", request.data) if request.data else {}
    if not isinstance(data, dict):
        raise ArgumentsError("data: expected a JSON object")
    args = request.args or data.get("args", "")
    if not isinstance(args, str):
        raise ArgumentsError("data: args: expected a text")
    arguments = parse(args)
    nodes = _inside(data, "hardwareSpec", "nodes")
    source = arguments.data_source and _json("--data-source", arguments.data_source)
    path = _data_path(source or data.get("dataSource") or [])
    return args, replace(
        arguments,
        workers=arguments.workers or _count(nodes, "num_nodes"),
        devices=arguments.devices or _count(_inside(nodes, "gpu"), "num_gpu"),
        data_path=path if arguments.data_path is None else arguments.data_path,
    )


def _json(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be stored
    except (ValueError, RecursionError) as error:
        raise ArgumentsError(f"{name} is no JSON: {error}"[:200]) from None
    return value


def _inside(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """An object in an object; an empty one if it is not there."""
    for name in names:
        data = data.get(name) or {}
        if not isinstance(data, dict):
            raise ArgumentsError(f"data: {name}: expected an object")
    return data


def _count(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    return positive(f"data: {name}", str(value)) if value else None


def _data_path(sources: Any) -> str | None:
    """The folder that a list of data sources names: `[{"type": "fs", "location": {"paths": ...}}]`."""
    if not isinstance(sources, list) or not all(isinstance(source, dict) for source in sources):
        raise ArgumentsError("dataSource: expected a list of objects")
    paths: list[str] = []
    for source in sources:
        if source.get("type", "fs") != "fs":
            raise ArgumentsError(f"dataSource: type {source['type']!r:.40}: only 'fs' is possible here")
        named = _inside(source, "location").get("paths")
        paths += named.split(",") if isinstance(named, str) else named if isinstance(named, list) else []
    if len(paths) > 1 or not all(isinstance(path, str) for path in paths):
        raise ArgumentsError("dataSource: one path is possible here, in which the job finds DATA_DIR")
    return paths[0].strip() if paths else None


@dataclass(frozen=True)
class FormPart:
    """A file as it was sent; it can be sought."""

    name: str
    file: BinaryIO


def with_names(parts: Sequence[FormPart], main: str) -> list[FormPart]:
    """Name the files that were sent without a name: archives by their content, a script as `main` does.

    Raises:
        InvalidError: one is none of both, or empty.
    """
    return [part if part.name else replace(part, name=_name_of(part.file, main)) for part in parts]


def _name_of(file: BinaryIO, main: str) -> str:
    if _is_archive(block := _beginning(file)):
        return UNNAMED_ARCHIVE
    if b"\0" in block:
        raise InvalidError(
            "file: it has no name, and is neither an archive nor a Python script, as it contains zero bytes",
            "send a file name with it, or a tar",
        )
    if script := PurePosixPath(main).name:
        return script
    raise InvalidError(
        "file: it has no name, and is no archive",
        "name the script in --model-main, or send a file name with it",
    )


def _beginning(file: BinaryIO) -> bytes:
    file.seek(0)
    block = file.read(tarfile.BLOCKSIZE)
    if not block:
        raise InvalidError("file: it has no name, and no content", "open it anew for every request")
    return block


def _is_archive(block: bytes) -> bool:
    if block.startswith((b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06")):
        return True
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")  # it has a checksum
    except tarfile.HeaderError:
        return False
    return True


def model_of(parts: Sequence[FormPart], main: str) -> FormPart | None:
    """The tar; without one the script that `main` names, else what comes first. None if nothing was sent."""
    tars = [part for part in parts if part.name.endswith(ARCHIVES)]
    scripts = [part for part in parts if part.name == PurePosixPath(main).name]
    return next(iter([*tars, *scripts, *parts]), None)


def beside(parts: Sequence[FormPart], model: FormPart | None) -> Mapping[str, bytes]:
    """The content of all others, by their names; they go into the folder that the script runs in."""
    contents: dict[str, bytes] = {}
    left = LARGEST
    for part in parts:
        if part is model:
            continue
        if not _is_plain(part.name):
            raise InvalidError(f"file {part.name!r:.80} has a name that no file can have", "rename it")
        if part.name in contents or (model is not None and part.name == model.name):
            raise InvalidError(f"two files are called {part.name!r:.80}", "rename one, or send a tar")
        part.file.seek(0)
        contents[part.name] = part.file.read(left + 1)
        left -= len(contents[part.name])
        if left < 0:
            raise TooLargeError(f"the files beside the model have more than {LARGEST:,} bytes", "send a tar")
    return contents


def _is_plain(name: str) -> bool:
    try:
        size = len(os.fsencode(name))
        name.encode()
    except UnicodeEncodeError:
        return False
    return 0 < size <= NAME_LIMIT and name not in (".", "..") and "/" not in name and "\0" not in name
