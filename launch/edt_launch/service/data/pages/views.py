"""What the pages of the data folder show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.service.data.folders import Listing
from edt_launch.service.data.sets import USERS
from edt_launch.service.web.asking import Question
from edt_launch.service.web.crumbs import DATA, Crumb

Json = Mapping[str, Any]


@dataclass(frozen=True)
class SetRow:
    """A data set; `size` and `files` are "-" if nobody knows them."""

    owner: str
    name: str
    path: str
    address: str
    files: str
    size: str
    time: float
    jobs: Sequence[str]
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
        folder_address(one["path"]),
        "-" if one["files"] is None else f"{one['files']:,}",
        "-" if one["size"] is None else byte_size(one["size"]),
        one["time"],
        one["jobs"],
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
    """Whether to delete a data set; not while jobs use it."""
    name = f"{one['owner']}/{one['name']}"
    size = "" if one["files"] is None else f" with {one['files']:,} files, {byte_size(one['size'])}"
    lines = [f"The data set is deleted{size}. No queued or running job uses it."]
    if one["jobs"]:
        lines = [
            f"It cannot be deleted yet, since jobs use it: {', '.join(one['jobs'][:10])}. Stop them, or wait."
        ]
    address = folder_address(one["path"])
    command = f"edt data rm {name}"
    return Question("Delete", name, lines, address, command=command, is_possible=not one["jobs"])


def folder_address(path: str) -> str:
    """The address of the page of a folder below the data folder."""
    return f"/data/folder?{urlencode({'path': path})}"


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
