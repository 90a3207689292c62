"""A submission, as it comes: its argument string, and what the form field `data` adds to it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from edt_launch.adapters.wmla.submission.args import Arguments, ArgumentsError, parse, positive


@dataclass(frozen=True)
class ExecRequest:
    """What somebody wants to have run.

    Attributes:
        args: the argument string as it came.
        group: name of an instance group, `sigName`; None for a submission in the manner of 2.x.
        data: the form field `data`, JSON: `args`, `hardwareSpec`, `dataSource`; empty without it.
        file_name: what the uploaded model is called; empty without one.
        arguments: what is appended to the script's.
    """

    args: str
    group: str | None = None
    data: str = ""
    file_name: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def main(self) -> str:
        """The script that it names; empty if it names none, or makes no sense."""
        try:
            return read(self)[1].main or ""
        except ArgumentsError:
            return ""


def read(request: ExecRequest) -> tuple[str, Arguments]:
    """The argument string that counts, and what the whole submission says.

    The argument string's own options come before what `data` says.

    Raises:
        ArgumentsError: it makes no sense; the message names the option or field.
    """
    data = _object("data", request.data) if request.data else {}
    args = request.args or _text(data, "args")
    found = parse(args)
    nodes = _inside(data, "hardwareSpec", "nodes")
    source = found.data_source and _json("--data-source", found.data_source)
    paths = _data_path(source or data.get("dataSource"))
    return args, replace(
        found,
        workers=found.workers or _count(nodes, "num_nodes"),
        devices=found.devices or _count(_inside(nodes, "gpu"), "num_gpu"),
        data_path=found.data_path if found.data_path is not None else paths,
        script=(*found.script, *request.arguments),
    )


def _json(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be stored
    except (ValueError, RecursionError) as error:
        raise ArgumentsError(f"{name} is no JSON: {error}"[:200]) from None
    return value


def _object(name: str, text: str) -> Mapping[str, Any]:
    value = _json(name, text)
    if not isinstance(value, dict):
        raise ArgumentsError(f"{name}: expected a JSON object")
    return value


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise ArgumentsError(f"data: {name}: expected a text")
    return value


def _inside(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """An object in an object; an empty one if it is not there."""
    for name in names:
        value = data.get(name) or {}
        if not isinstance(value, dict):
            raise ArgumentsError(f"data: {name}: expected an object")
        data = value
    return data


def _count(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    return positive(f"data: {name}", str(value)) if value else None


def _data_path(sources: Any) -> str | None:
    """The folder that a list of data sources names: `[{"type": "fs", "location": {"paths": ...}}]`."""
    if not sources:
        return None
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
