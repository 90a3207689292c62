"""Taking a search in: its definition is read, its archive looked at and kept, then it is written down."""

import secrets
import shutil
from dataclasses import replace
from itertools import count
from typing import BinaryIO

from edt_launch.adapters.wmla.hypersearch.controller import CONFIG
from edt_launch.adapters.wmla.hypersearch.definition import parse
from edt_launch.adapters.wmla.submission import submitting
from edt_launch.adapters.wmla.submission.request import ExecRequest
from edt_launch.service.api.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.database.records import UserRecord
from edt_launch.service.database.search_records import SearchRecord
from edt_launch.service.deleting import delete_folder
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.submission import new_id

RESERVED = "algorithm"
"""A name that is a path of its own in the interface."""


def take_in(context: Context, user: UserRecord, data: str, code: BinaryIO, file_name: str) -> SearchRecord:
    """Queue a search.

    Args:
        context: the service's parts.
        user: whose it will be.
        data: its definition, as JSON.
        code: what its trials run, as for an exec; it can be sought.
        file_name: what that is called.

    Raises:
        ServiceError: it makes no sense, or no trial could be submitted.
        pydantic.ValidationError: likewise.
        OSError: the disk is full, say.
    """
    definition = parse(data)
    spec = definition.model_spec
    if spec.sig_name:
        submitting.group_name(spec.sig_name)
    if definition.hpo_name == RESERVED:
        raise InvalidError(f"hpoName: {RESERVED!r} is reserved", "take another name")
    seed = definition.algo_def.seed
    search = SearchRecord(
        id="h" + new_id()[1:],
        name=definition.hpo_name or "",
        owner=user.name,
        definition=definition.dumped,
        file_name=file_name[-255:],
        seed=secrets.randbits(32) if seed is None else seed,
        created=context.clock(),
    )
    archive = context.home.search(search.id)
    asked = ExecRequest(spec.args, group=spec.sig_name or None, file_name=search.file_name)
    _keep(context, user, search, asked, code)
    try:
        added = _add(context, search)
    except BaseException:
        archive.unlink(missing_ok=True)
        raise
    context.bus.notify(Topic.SEARCHES)
    return added


def _keep(
    context: Context, user: UserRecord, search: SearchRecord, asked: ExecRequest, code: BinaryIO
) -> None:
    """Keep the archive for the trials; one with which none could be submitted is refused now."""
    home = context.home
    copy, unpacked = home.incoming / search.id, home.incoming / f"{search.id}.unpacked"
    try:
        submitting.check(context, user, asked, code, unpacked, [CONFIG])
        code.seek(0)
        with copy.open("wb") as file:
            shutil.copyfileobj(code, file)
        copy.rename(home.search(search.id))
    finally:
        delete_folder(unpacked)
        copy.unlink(missing_ok=True)


def _add(context: Context, search: SearchRecord) -> SearchRecord:
    """Write a search down, with a name that no other one has."""
    if search.name:
        if not context.store.searches.add(search):
            raise ConflictError(f"hpoName: there is a search {search.name!r} already", "take another name")
        return search
    for number in count(int(search.created * 1e6)):
        named = replace(search, name=f"{search.owner}-hpo-{number}")
        if context.store.searches.add(named):
            return named
    raise AssertionError("numbers do not end")
