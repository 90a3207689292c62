"""What forms send, and what is made of it."""

import secrets
import shlex
from typing import Annotated, Any, BinaryIO, TypeVar

from fastapi import Form
from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator

from edt_launch.service.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooLargeError,
)
from edt_launch.service.http import problems

MAX_FIELD_LENGTH = 2**16
"""Characters of a field. What makes no sense is told by the form, which keeps what was written."""


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")  # browsers send line ends so


Line = AfterValidator(_lines)

Text = Annotated[str, Field(max_length=MAX_FIELD_LENGTH), Line]
"""What is written in a field of an action."""

Value = Annotated[str, Form(max_length=MAX_FIELD_LENGTH), Line]
"""What is written in a field."""

WRONG = (InvalidError, ConflictError, ForbiddenError, NotFoundError, TooLargeError)
"""What is told where a form was filled in."""

ModelT = TypeVar("ModelT", bound=BaseModel)


class VersionField(BaseModel):
    """Of a form about something that others may change meanwhile."""

    version: str = Field("", pattern="^[0-9]{0,9}$")

    @property
    def seen(self) -> int | None:
        """The version that the form is about; None: whichever."""
        return int(self.version) if self.version else None


class CodeField(BaseModel):
    """Of a form that an archive of code may be sent with."""

    code: Any = None

    @field_validator("code")
    @classmethod
    def _chosen(cls, code: Any) -> Any:
        """The file that was chosen; browsers send an empty one without a name if none was."""
        if isinstance(code, str) and code:
            raise ValueError("send the archive as a file")
        return code if code and code.filename else None

    @property
    def archive(self) -> tuple[BinaryIO | None, str]:
        """The archive and its name; None without one."""
        return (None, "") if self.code is None else (self.code.file, self.code.filename)


class KeyField(BaseModel):
    """Of an action that starts something: sent twice, it starts that once. Empty: it is not sent twice."""

    key: str = Field("", pattern="^[A-Za-z0-9_-]{0,64}$")


def new_key() -> str:
    """A key for one form that is shown."""
    return secrets.token_urlsafe(12)


def words(text: str) -> list[str]:
    """The words of a command; raises `InvalidError`."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidError(f"command: {error}", "close its quotes") from None


def parsed(model: type[ModelT], values: dict[str, Any]) -> ModelT:
    """What a form was sent with, as REST takes it; raises `InvalidError`."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidError(problems.invalid(error.errors()).detail) from None
