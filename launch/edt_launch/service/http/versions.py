"""Versions of what two people may change at the same time: `ETag` in answers, `If-Match` in requests."""

from typing import Annotated

from fastapi import Depends, Header, Response


def _seen(
    if_match: Annotated[
        str | None,
        Header(
            pattern=r'^(\*|"[0-9]{1,9}")$',
            description="The ETag of what was seen: the change is refused if somebody else came first.",
        ),
    ] = None,
) -> int | None:
    return None if if_match in (None, "*") else int(if_match.strip('"'))


Seen = Annotated[int | None, Depends(_seen)]
"""The version that whoever changes something has seen; None: whichever."""


def tag(response: Response, version: int) -> None:
    """Tell the version of what is answered."""
    response.headers["ETag"] = f'"{version}"'
