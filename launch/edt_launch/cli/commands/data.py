"""``edt data``."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from typer import Argument, Option

from edt_launch.cli import model, packing
from edt_launch.cli.client.service import Service
from edt_launch.cli.client.transport import Body, Writer
from edt_launch.cli.commands.archives import STANDARD_OUTPUT, save
from edt_launch.cli.errors import MistakenError, RefusedError
from edt_launch.cli.packing import Code, everything, tell
from edt_launch.cli.screen import Column, Columns, listing, moment, note, plural, terminal
from edt_launch.cli.session import AsJson, answer, confirm, connect, group, print_json
from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.core.text.terminal_text import visible

app = group(no_args_is_help=True, help="Upload, list and delete data sets for jobs.")

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
"""How the names of archives end."""
BLOCK = 2**20
"""Bytes that are sent at a time."""

DataSet = Annotated[str, Argument(metavar="NAME", help="Name of a data set, or OWNER/NAME.")]


@app.command()
def ls(
    path: Annotated[
        str | None, Argument(help="A folder below the data folder, such as users/ann/digits.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List all data sets, or what is in a folder below the data folder."""
    service = connect()
    if path is None:
        data = service.call("GET", "datasets")
        answer(data, as_json, lambda: _sets(data))
    else:
        data = service.call("GET", "data", query={"path": path})
        answer(data, as_json, lambda: _content(data))


@app.command()
def put(
    name: Annotated[str, Argument(help="Name of the data set, or OWNER/NAME for administrators.")],
    path: Annotated[Path, Argument(help="A folder, an archive (.zip, .tar, .tar.gz, .tgz), or a file.")],
    replace: Annotated[bool, Option("--replace", help="Replace what has the same name.")] = False,
    no_unpack: Annotated[bool, Option("--no-unpack", help="Store an archive as a file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Upload a folder or an archive as a data set, or add a file to one; prints its path.

    Jobs find it at that path below the data folder: give it to `edt experiment create --source`.
    """
    service = connect()
    owner, name = _named(service, name)
    query = {"replace": replace or None}
    parts = ["datasets", owner, name]
    body: Body
    if not path.exists():
        raise MistakenError(f"there is no {path}", "name a folder, an archive or a file")
    is_whole = path.is_dir() or (not no_unpack and path.name.lower().endswith(ARCHIVES))
    if is_whole:
        _check_new(service, owner, name, replace)
    if path.is_dir():
        folder = everything(path)
        if not as_json:
            tell(folder, "data")
        body = _FolderBody(folder)
    else:
        body = _FileBody(path)
        if not is_whole:
            parts += ["files", path.name]
    data = service.call("PUT", *parts, query=query, body=body, timeout=None)
    if as_json:
        print_json(data)
        return
    print(data.get("path"))
    stored = f"{plural(data.get('files') or 0, 'file')}, {byte_size(data.get('size') or 0)}"
    note(f"{stored}; for jobs of edt submit: --env DATA_DIR={data.get('location')}")


@app.command()
def get(
    name: DataSet,
    file: Annotated[str | None, Argument(help="Fetch only this file, by its path in the data set.")] = None,
    output: Annotated[
        str | None,
        Option(
            "--output",
            "-o",
            help="File to write, - for standard output. Default: NAME.tar.gz or .zip, or the file's name.",
        ),
    ] = None,
    as_zip: Annotated[bool, Option("--zip", help="Write a zip instead of a tar.gz, without links.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch a data set as a tar.gz or zip, or a file of it as it is."""
    service = connect()
    owner, name = _named(service, name)
    place = str(service.call("GET", "datasets", owner, name)["path"])
    if file is None:
        kind = "zip" if as_zip else "tar.gz"
        path = output or f"{name}.{kind}"
        sent = service.send("GET", "data", "archive", query={"path": place, "format": kind})
    else:
        place = f"{place}/{file}"
        path = output or PurePosixPath(file).name
        sent = service.send("GET", "data", "file", query={"path": place})
    save(sent, path)
    if sent.header("EDT-Complete") == "false":
        note("left out: what the service cannot read, or not all accounts may read")
    if path != STANDARD_OUTPUT:
        confirm({"fetched": place, "file": path}, as_json, f"{place} is in {path}")


@app.command()
def rm(
    name: DataSet,
    file: Annotated[str | None, Argument(help="Delete only this file, by its path in the data set.")] = None,
    as_json: AsJson = False,
) -> None:
    """Delete a data set, or a file of it, that no unfinished job or search uses."""
    service = connect()
    owner, name = _named(service, name)
    parts = ["datasets", owner, name]
    if file is not None:
        parts += ["files", *file.split("/")]
    service.order("DELETE", *parts)
    what = f"{owner}/{name}" if file is None else f"{owner}/{name}/{file}"
    confirm({"removed": what}, as_json, f"{what} is deleted")


def _check_new(service: Service, owner: str, name: str, replace: bool) -> None:
    """See whether there is a data set in the way before much is sent; the service looks again afterwards."""
    try:
        present = service.call("GET", "datasets", owner, name)
    except RefusedError as error:
        if error.status != 404:
            raise
        return
    if not replace:
        raise MistakenError(
            f"there is a data set {owner}/{name} already", "give --replace, or choose another name"
        )
    if users := present.get("used_by"):
        raise MistakenError(
            f"{owner}/{name} is used by {', '.join(users[:10])}", "stop them, or choose another name"
        )


class _FolderBody:
    """A folder as a tar, made while it is sent: data is mostly compressed already."""

    content_type = "application/x-tar"

    def __init__(self, folder: Code) -> None:
        self._folder = folder

    def write_to(self, file: Writer) -> None:
        """Write it."""
        packing.write_with_bar(self._folder, file, is_compressed=False)


class _FileBody:
    """A file as it is."""

    content_type = "application/octet-stream"

    def __init__(self, path: Path) -> None:
        self._path = path

    def write_to(self, file: Writer) -> None:
        """Write it."""
        with self._path.open("rb") as content:
            while block := content.read(BLOCK):
                file.write(block)


def _named(service: Service, text: str) -> tuple[str, str]:
    """The owner and name that NAME or OWNER/NAME stands for; a path that `edt data ls` prints does, too."""
    owner, slash, name = text.removeprefix("users/").rpartition("/")
    if not name or "/" in owner or (slash and not owner):
        raise MistakenError(f"{text!r} is no name of a data set", "give NAME, or OWNER/NAME: see edt data ls")
    return owner or str(service.about()["user"]), name


def _sets(data: Mapping[str, Any]) -> list[str]:
    found = model.many(data, "datasets")
    if not found:
        return ["no data sets; upload one with: edt data put NAME FOLDER"]
    now = time.time()
    columns: Columns[Mapping[str, Any]] = {
        Column("PATH", least=8): lambda one: visible(one.get("path")),
        Column("SIZE", right=True): lambda one: _size(one.get("size")),
        Column("FILES", right=True): lambda one: "-" if one.get("files") is None else str(one["files"]),
        Column("CHANGED"): lambda one: moment(one.get("time"), now),
        Column("USED BY", optional=True): lambda one: (
            ", ".join(map(visible, one.get("used_by") or ())) or "-"
        ),
    }
    more = [] if data.get("complete") else ["not all are listed"]
    return [*listing(columns, found, *terminal()), *more]


def _content(data: Mapping[str, Any]) -> list[str]:
    now = time.time()
    found: Sequence[Mapping[str, Any]] = [
        *({"name": f"{name}/"} for name in data.get("folders") or ()),
        *model.many(data, "details"),
    ]
    if not found:
        return ["empty"]
    columns: Columns[Mapping[str, Any]] = {
        Column("NAME", least=8): lambda one: visible(one.get("name")),
        Column("SIZE", right=True): lambda one: _size(one.get("size")),
        Column("CHANGED"): lambda one: moment(one.get("time"), now),
    }
    more = [] if data.get("complete") else ["not all are listed"]
    return [*listing(columns, found, *terminal()), *more]


def _size(size: int | None) -> str:
    return "-" if size is None else byte_size(size)
