"""The data folder in a browser: data sets, what is in them, uploads."""

from pathlib import PurePosixPath
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, field_validator

from edt_launch.service.data import service
from edt_launch.service.data.data_set import USERS
from edt_launch.service.data.pages import views
from edt_launch.service.errors import InvalidError, NotFoundError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, NoFields, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import Text

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
"""How the names of archives end."""

pages = APIRouter()


@pages.get("/data")
def data(request: Request, context: ContextDep, user: CurrentUser) -> Response:
    """All data sets."""
    view = views.overview(service.all_sets(context), service.top(context), user.name, user.is_admin)
    return templating.page(request, "data/all.html", view=view)


@pages.get("/data/folder")
def folder(request: Request, context: ContextDep, user: CurrentUser, path: str = "") -> Response:
    """A folder."""
    try:
        listing = service.listing(context, path)
    except InvalidError as error:
        raise NotFoundError(
            error.detail.removeprefix("source: "), "the page Data has what there is"
        ) from None
    found = service.set_of(path)
    data_set = None
    if found is not None:
        one = service.one_set(context, *found[:2])
        data_set = views.row(one, user.name, user.is_admin)
    return templating.page(request, "data/folder.html", view=views.folder(listing, data_set))


class UploadFields(BaseModel):
    """Of an upload. What a checkbox that is not ticked means is not sent: `sent` says that the form was."""

    owner: Text = ""
    name: Text = ""
    files: list[Any] = Field(default_factory=list)
    replace: str = Field("", max_length=8)
    unpack: str = Field("", max_length=8)

    @field_validator("files")
    @classmethod
    def _chosen(cls, files: list[Any]) -> list[Any]:
        """The files that were chosen; browsers send an empty one without a name if none was."""
        if any(isinstance(one, str) and one for one in files):
            raise ValueError("files: send them as files")
        return [one for one in files if one and one.filename]


def _ask_upload(asked: Asked) -> views.UploadView:
    given: UploadFields = asked.given
    is_sent = asked.error is not None
    return views.UploadView(
        given.owner,
        given.name,
        asked.context.settings.max_data,
        bool(given.replace),
        bool(given.unpack) or not is_sent,
    )


def _upload(asked: Asked) -> str:
    given: UploadFields = asked.given
    owner, name = given.owner or asked.user.name, given.name.strip()
    if not given.files:
        raise InvalidError("no file was chosen", "choose an archive, or files")
    is_replacing = bool(given.replace)
    first = given.files[0]
    if given.unpack and len(given.files) == 1 and first.filename.lower().endswith(ARCHIVES):
        made = service.put(asked.context, asked.user, owner, name, first.file, is_replacing=is_replacing)
    else:
        files = [(PurePosixPath(one.filename.replace("\\", "/")).name, one.file) for one in given.files]
        made = service.put_files(asked.context, asked.user, owner, name, files, is_replacing=is_replacing)
    asked.note(f"{owner}/{name}")
    return views.folder_address(made["path"])


def _ask_delete(asked: Asked) -> Question:
    owner, _, name = asked.id.partition("/")
    service.check_change(asked.context, asked.user, owner)
    return views.delete_question(service.one_set(asked.context, owner, name))


def _delete(asked: Asked) -> str:
    owner, _, name = asked.id.partition("/")
    asked.carry_out([service.delete(asked.context, asked.user, owner, name)])
    return "/data"


def _file_of(asked: Asked) -> tuple[str, str, str]:
    found = service.set_of(f"{USERS}/{asked.id}")
    if found is None or not found[2]:
        raise NotFoundError(f"{asked.id[:200]!r} is no file of a data set", "the page Data has what there is")
    return found


def _ask_delete_file(asked: Asked) -> Question:
    owner, name, path = _file_of(asked)
    service.check_change(asked.context, asked.user, owner, name)
    above, _, last = f"{USERS}/{owner}/{name}/{path}".rpartition("/")
    lines = [f"The file is deleted from the data set {owner}/{name}."]
    return Question("Delete", last, lines, views.folder_address(above))


def _delete_file(asked: Asked) -> str:
    owner, name, path = _file_of(asked)
    service.delete_file(asked.context, asked.user, owner, name, path)
    return views.folder_address(f"{USERS}/{owner}/{name}/{path}".rpartition("/")[0])


router = APIRouter()
router.include_router(pages)
router.include_router(
    routes(
        [
            Action(
                "/data/upload",
                _ask_upload,
                _upload,
                UploadFields,
                stores_data=True,
                template="data/upload.html",
            ),
            Action("/data/sets/{id:path}/delete", _ask_delete, _delete, NoFields),
            Action("/data/files/{id:path}/delete", _ask_delete_file, _delete_file, NoFields),
        ]
    )
)
