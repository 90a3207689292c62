"""What forms send."""

import secrets
from typing import Annotated

from fastapi import Form
from pydantic import AfterValidator

MOST = 2**16
"""Characters of a field. What makes no sense is told by the form, which keeps what was written."""


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")  # browsers send line ends so


Line = AfterValidator(_lines)

Value = Annotated[str, Form(max_length=MOST), Line]
"""What is written in a field."""

FormKey = Annotated[str, Form(pattern="^[A-Za-z0-9_-]{0,64}$")]
"""What a form has that starts something: sent twice, it starts that once. Empty: it is not sent twice."""


def new_key() -> str:
    """A key for one form that is shown."""
    return secrets.token_urlsafe(12)
