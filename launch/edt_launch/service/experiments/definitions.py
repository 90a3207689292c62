"""Training definitions: making and changing them, and keeping their codes."""

import contextlib
import os
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.app.home import DEFINITION_ID, Home
from edt_launch.service.db.store import Store
from edt_launch.service.errors import ConflictError, InvalidError, NotFoundError
from edt_launch.service.experiments.projects import (
    check_version,
    differs,
    given,
    in_use,
    project_for,
    settled,
    taken,
)
from edt_launch.service.experiments.records import CodeRecord, DefinitionRecord, Role
from edt_launch.service.experiments.searches.service import Deletion
from edt_launch.service.experiments.spec import HOROVOD, MAX_CODES, DefinitionChange, DefinitionSpec
from edt_launch.service.experiments.stores.definitions import TooManyError
from edt_launch.service.experiments.stores.projects import InUseError
from edt_launch.service.files.archives import packing
from edt_launch.service.files.archives.deleting import delete_folder
from edt_launch.service.files.results import submitted_files
from edt_launch.service.jobs.specification import JobSpec, check_framework
from edt_launch.service.jobs.submission import Submission, digest, new_id
from edt_launch.service.names import MAX_NAME

KIND = "training definition"

_PLACING = threading.Lock()
"""Held from when an archive is put in its place until it is known whether a definition has that code."""


def definition_for(
    context: Context, user: UserRecord, definition_id: str, least: Role = Role.VIEWER
) -> DefinitionRecord:
    """The training definition of an id, in whose project the user has to be `least`.

    Raises:
        NotFoundError: there is none such.
        ForbiddenError: the user is not.
    """
    definition = context.store.definitions.get(definition_id)
    if definition is None:
        raise NotFoundError(
            f"there is no training definition {definition_id[:80]!r}", "GET /api/v1/definitions lists them"
        )
    project_for(context, user, definition.project, least)
    return definition


def create(
    context: Context, user: UserRecord, spec: DefinitionSpec, code: BinaryIO | None, code_name: str
) -> DefinitionRecord:
    """Make a training definition, with code from an archive, which can be sought, or of a job.

    Raises:
        ServiceError: the code cannot be used, the user may not do that, or the name is taken.
        OSError: the disk is full, say.
    """
    project = project_for(context, user, spec.project, Role.EDITOR)
    now, command = context.clock(), tuple(spec.command)
    id_ = "d" + new_id()[1:]
    definition = DefinitionRecord(
        id_, project.id, spec.name, spec.description, spec.framework, command, user.name, now, now, user.name
    )
    if spec.code_of is not None and code is not None:
        raise InvalidError("code_of and code are both given", "give one of them")
    with contextlib.ExitStack() as stack:
        if spec.code_of is not None:
            code = stack.enter_context(_code_of(context, user, spec.code_of))
            code_name = f"{spec.code_of}.tar.gz"
        _check(context, user, definition, code)
        record = None
        if code is not None:
            record = stack.enter_context(_kept(context, user, definition, code, code_name))
            definition = replace(definition, code=record.place)
        if not context.store.definitions.add(definition, [record] if record else ()):
            raise taken(KIND, spec.name)
    return definition


def change(
    context: Context,
    user: UserRecord,
    definition_id: str,
    changes: DefinitionChange,
    seen: int | None,
    code: BinaryIO | None = None,
    code_name: str = "",
    *,
    with_present_code: bool = False,
) -> DefinitionRecord:
    """Change a training definition of which the user has seen a version (None: whichever): all, or nothing.

    Without a difference, it keeps its version. With `with_present_code`, its command has to fit that, unless
    other code is given: an archive, which becomes a new version unless it has been there before.

    Raises:
        ServiceError: as of `create`; somebody has changed it meanwhile, or it has too many codes.
        OSError: the disk is full, say.
    """
    definition = definition_for(context, user, definition_id, Role.EDITOR)
    store, now = context.store.definitions, context.clock()
    check_version(definition, seen, now)
    values = given(changes, now, user)
    present = store.code(definition.id, definition.code)
    is_other = code is not None and (present is None or digest(code) != present.digest)
    if not is_other and not differs(definition, values):
        return definition
    wanted = replace(definition, **values)
    with contextlib.ExitStack() as stack:
        if with_present_code and not is_other:
            code = stack.enter_context(opened(context, definition.id, present))
        _check(context, user, wanted, code)
        if code is None or not is_other:
            done = store.change(definition.id, definition.version, **values)
        else:
            record = stack.enter_context(_kept(context, user, definition, code, code_name))
            try:
                done = store.set_code(record, definition.version, MAX_CODES, **values)
            except TooManyError:
                said = f"{definition.name!r} has {MAX_CODES} versions of its code"
                raise ConflictError(said, "make another training definition") from None
    return settled(done, definition, store.get(definition.id), changes.name, KIND, now)


def delete(context: Context, user: UserRecord, definition_id: str) -> Deletion:
    """Forget a training definition and its codes; `ConflictError` names the experiments that use it."""
    definition = definition_for(context, user, definition_id, Role.EDITOR)
    try:
        context.store.definitions.delete(definition.id)
    except InUseError as error:
        raise in_use(definition.name, error.names, "experiment") from None
    return partial(delete_folder, context.home.definition(definition.id))


@contextlib.contextmanager
def opened(context: Context, definition: str, code: CodeRecord | None) -> Iterator[BinaryIO | None]:
    """The archive of a definition's code; None if it has none; `ConflictError` if it is gone."""
    if code is None:
        yield None
        return
    try:
        file = _archive(context.home, definition, code.digest).open("rb")
    except FileNotFoundError:
        raise ConflictError("the code of the training definition was deleted", "send it again") from None
    with file:
        yield file


def remove_strays(home: Home, store: Store) -> None:
    """Delete codes that no definition has: a service was killed just before one was written down."""
    known = store.definitions.ids()
    for path in home.definitions.iterdir():
        if re.fullmatch(DEFINITION_ID, path.name) and path.name not in known:
            delete_folder(path)


def _check(context: Context, user: UserRecord, definition: DefinitionRecord, code: BinaryIO | None) -> None:
    """See whether its code could be submitted as that of a job."""
    if definition.framework != HOROVOD and definition.command:
        try:
            check_framework(definition.framework, definition.command, 1, 1)
        except ValueError as error:
            raise InvalidError(str(error), "name a script, or choose another framework") from None
    if code is not None:
        spec = JobSpec(command=list(definition.command) or ["true"])
        context.submitter.rehearse(Submission(user, spec, code))


@contextlib.contextmanager
def _kept(
    context: Context, user: UserRecord, definition: DefinitionRecord, code: BinaryIO, name: str
) -> Iterator[CodeRecord]:
    """An archive, found by its digest; it stays if a code of the definition is that one afterwards."""
    told = digest(code)
    path = _archive(context.home, definition.id, told)
    plain = "".join(letter for letter in name if letter.isprintable())[-MAX_NAME:]
    copy = context.home.incoming / f"{definition.id}.{new_id()}"
    try:
        code.seek(0)
        with copy.open("wb") as file:
            shutil.copyfileobj(code, file)
        record = CodeRecord(definition.id, 1, told, plain, copy.stat().st_size, user.name, context.clock())
        with _PLACING:
            path.parent.mkdir(exist_ok=True)
            copy.rename(path)
            try:
                yield record
            finally:
                _drop_unknown(context, record)
    finally:
        copy.unlink(missing_ok=True)


def _drop_unknown(context: Context, record: CodeRecord) -> None:
    """Delete an archive that no code of its definition is, and the folder of a definition that is gone."""
    known = context.store.definitions.codes(record.definition)
    if record.digest not in {code.digest for code in known}:
        path = _archive(context.home, record.definition, record.digest)
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _archive(home: Home, definition: str, told: str) -> Path:
    return home.definition(definition) / told


@contextlib.contextmanager
def _code_of(context: Context, user: UserRecord, job_id: str) -> Iterator[BinaryIO]:
    """The code of a job, as an archive: what a run was started with, or else the submitted files.

    Those of others' runs are for editors, who may run them, too; files of others' jobs are theirs alone.
    """
    job = context.job(job_id)
    run = context.store.experiments.runs_of_jobs([job.id]).get(job.id)
    if run is not None and run.digest and context.store.definitions.get(run.definition) is not None:
        if not may(user, job):
            definition_for(context, user, run.definition, Role.EDITOR)
        kept = context.store.definitions.code(run.definition, run.code)
        with opened(context, run.definition, kept) as archive:
            if archive is not None:
                yield archive
                return
    job = context.job_of(job_id, user)
    folder = context.home.job(job.id)
    submitted = submitted_files(folder)
    if not submitted:
        raise ConflictError(f"{job.id} has no submitted files", "send an archive")
    path = context.home.incoming / f"{job.id}.{new_id()}"
    try:
        with path.open("wb+") as file:
            packed = (packing.Member(name, folder.code / name) for name in sorted(submitted))
            for block in packing.pack(member for member in packed if os.path.lexists(member.path)):
                file.write(block)
            yield file
    finally:
        path.unlink(missing_ok=True)
