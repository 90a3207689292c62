"""The form that submissions and searches come in: files in `file`, and a field `data`.

Clients that were generated from WMLA's specification send a file without a name. The web framework takes
that for a text of 1 MiB at most.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from edt_launch.adapters.wmla.submission.request import FormPart
from edt_launch.service.errors import InvalidError

FILE, DATA = "file", "data"


@dataclass(frozen=True)
class Form:
    """What was sent.

    Attributes:
        parts: the files; the names of those without one are empty.
        data: empty if it was not sent.
    """

    parts: tuple[FormPart, ...] = ()
    data: str = ""


class _Parser(MultiPartParser):
    """Takes each part `file` for a file."""

    def on_headers_finished(self) -> None:
        part = self._current_part
        _, options = parse_options_header(part.content_disposition)
        if options.get(b"name") == FILE.encode() and b"filename" not in options:
            part.content_disposition = (part.content_disposition or b"") + b'; filename=""'
        super().on_headers_finished()


async def read_form(request: Request) -> AsyncIterator[Form]:
    """The form of a request; its files are closed when that has been answered.

    Raises:
        InvalidError: it is broken.
        OSError: the disk is full, say.
    """
    is_multipart = request.headers.get("content-type", "").lower().startswith("multipart/form-data")
    try:
        parser = _Parser(request.headers, request.stream())
        fields = await (parser.parse() if is_multipart else request.form())
    except MultiPartException as error:
        raise InvalidError(f"the form is broken: {error.message}") from None
    except ClientDisconnect:  # nobody reads that, but the service's log is not to have it for a mistake
        raise InvalidError("the connection ended within the form") from None
    try:
        yield _form(fields)
    finally:
        await fields.close()


def _form(fields: FormData) -> Form:
    files = [value for value in fields.getlist(FILE) if isinstance(value, UploadFile)]
    data = fields.get(DATA, "")
    if isinstance(data, UploadFile):
        raise InvalidError(f"{DATA}: expected a text: a part of the form that has no file name")
    return Form(tuple(FormPart(file.filename or "", file.file) for file in files), data)


FormDep = Annotated[Form, Depends(read_form)]
