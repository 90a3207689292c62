"""Creating a search: its definition is read, and becomes an experiment of the service."""

import re
from itertools import count
from typing import BinaryIO

from edt_launch.adapters.wmla.hypersearch.definition import parse
from edt_launch.adapters.wmla.hypersearch.trials import CONFIG
from edt_launch.adapters.wmla.submission import submitting
from edt_launch.adapters.wmla.submission.request import ExecRequest
from edt_launch.service import experiments
from edt_launch.service.api.context import Context
from edt_launch.service.database.records import ExperimentRecord, UserRecord
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.home import EXPERIMENT_ID

KIND = "wmla"
"""Of these searches, in `ExperimentRecord.kind`."""

RESERVED = "algorithm"
"""A name that is a path of its own in the interface."""


def create_search(
    context: Context, user: UserRecord, data: str, code: BinaryIO, file_name: str
) -> ExperimentRecord:
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
    if definition.hpo_name and re.fullmatch(EXPERIMENT_ID, definition.hpo_name):
        raise InvalidError(f"hpoName: {definition.hpo_name!r} looks like an id", "take another name")
    file_name = file_name[-255:]
    asked = ExecRequest(spec.args, group=spec.sig_name or None, file_name=file_name)
    submitting.check(context, user, asked, code, [CONFIG])
    now = context.clock()
    search = experiments.record_of(
        user, definition.spec, now, kind=KIND, template=spec.model_dump(), file_name=file_name
    )
    made = (f"{user.name}-hpo-{number}" for number in count(int(now * 1e6)))
    added = experiments.create(context, search, code, [definition.hpo_name] if definition.hpo_name else made)
    if added is None:
        raise ConflictError(
            f"hpoName: there is a search {definition.hpo_name!r} already", "take another name"
        )
    return added
