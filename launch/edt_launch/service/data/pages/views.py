"""What the pages of the data folder show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.service.data.data_set import USERS
from edt_launch.service.data.folders import Listing
from edt_launch.service.web.asking import Question
from edt_launch.service.web.crumbs import DATA, Crumb

Json = Mapping[str, Any]


MAX_NAMED = 10
"""Jobs and searches that are named of those that use a data set."""


@dataclass(frozen=True)
class SetRow:
    """A data set; `size` and `files` are "-" if nobody knows them.

    `used_by` has ids and addresses of jobs and searches.
    """

    owner: str
    name: str
    path: str
    location: str
    address: str
    files: str
    size: str
    time: float
    used_by: Sequence[tuple[str, str]]
    may_change: bool

    @property
    def upload(self) -> str:
        """Where more is uploaded into it."""
        return f"/data/upload?{urlencode({'owner': self.owner, 'name': self.name})}"

    @property
    def delete(self) -> str:
        """Where it is deleted."""
        return f"/data/sets/{quote(f'{self.owner}/{self.name}')}/delete"


@dataclass(frozen=True)
class Overview:
    """All data sets, and the other folders of the data folder: name and address."""

    sets: Sequence[SetRow]
    is_complete: bool
    others: Sequence[tuple[str, str]]
    files: int


@dataclass(frozen=True)
class FileRow:
    """A file; `delete` is empty if the viewer may not."""

    name: str
    size: str
    time: float
    address: str
    delete: str


@dataclass(frozen=True)
class FolderView:
    """A folder below the data folder, and the data set that it is in."""

    title: str
    path: str
    crumbs: Sequence[Crumb]
    data_set: SetRow | None
    is_whole_set: bool
    folders: Sequence[tuple[str, str]]
    files: Sequence[FileRow]
    is_complete: bool
    archive: str
    json: str


@dataclass(frozen=True)
class UploadView:
    """The form of an upload; `owner` is empty for the viewer."""

    owner: str
    name: str
    most: int
    is_replacing: bool = False
    is_unpacked: bool = True
    error: str = ""


def row(one: Json, user: str, is_admin: bool) -> SetRow:
    """A data set, as a user sees it."""
    return SetRow(
        one["owner"],
        one["name"],
        one["path"],
        one["location"],
        folder_address(one["path"]),
        "-" if one["files"] is None else f"{one['files']:,}",
        "-" if one["size"] is None else byte_size(one["size"]),
        one["time"],
        [(id_, f"/{'jobs' if id_.startswith('j') else 'experiments'}/{id_}") for id_ in one["used_by"]],
        is_admin or one["owner"] == user,
    )


def overview(found: Json, top: Listing, user: str, is_admin: bool) -> Overview:
    """The page of all data sets: the user's own ones first."""
    rows = sorted((row(one, user, is_admin) for one in found["datasets"]), key=lambda one: one.owner != user)
    others = [(name, folder_address(name)) for name in top.folders if name != USERS]
    return Overview(rows, found["complete"], others, len(top.files))


def folder(listing: Listing, data_set: SetRow | None) -> FolderView:
    """The page of a folder."""
    parts = listing.path.split("/") if listing.path else []
    above = [DATA]
    start = 0 if data_set is None else 2
    above += (
        Crumb(folder_address("/".join(parts[:depth])), parts[depth - 1])
        for depth in range(start + 1, len(parts))
    )
    may_change = data_set is not None and data_set.may_change
    return FolderView(
        parts[-1] if parts else "Data folder",
        listing.path,
        above,
        data_set,
        data_set is not None and listing.path == data_set.path,
        [(name, folder_address(_joined(listing.path, name))) for name in listing.folders],
        [
            FileRow(
                one.name,
                byte_size(one.size),
                one.time,
                f"/api/v1/data/file?{urlencode({'path': _joined(listing.path, one.name)})}",
                f"/data/files/{quote(_joined(listing.path, one.name).removeprefix(f'{USERS}/'))}/delete"
                if may_change
                else "",
            )
            for one in listing.files
        ],
        listing.complete,
        f"/api/v1/data/archive?{urlencode({'path': listing.path})}",
        f"/api/v1/data?{urlencode({'path': listing.path})}",
    )


def delete_question(one: Json) -> Question:
    """Whether to delete a data set; not while something uses it."""
    name = f"{one['owner']}/{one['name']}"
    size = "" if one["files"] is None else f" with {one['files']:,} files, {byte_size(one['size'])}"
    line = f"The data set is deleted{size}. No unfinished job or search uses it."
    if one["used_by"]:
        users = ", ".join(one["used_by"][:MAX_NAMED])
        more = " and others" if len(one["used_by"]) > MAX_NAMED else ""
        line = f"It cannot be deleted yet, since it is used by {users}{more}. Stop them, or wait."
    address, command = folder_address(one["path"]), f"edt data rm {name}"
    return Question("Delete", name, [line], address, command=command, is_possible=not one["used_by"])


def folder_address(path: str) -> str:
    """The address of the page of a folder below the data folder."""
    return f"/data/folder?{urlencode({'path': path})}"


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
