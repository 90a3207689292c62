"""Making a job of what a WMLA client sends: its code is unpacked, its script found, its names given."""

import io
import os
import re
import tarfile
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.environment import DRIVER_VARIABLE, USER_VARIABLE
from edt_launch.adapters.wmla.submission import request, sizes
from edt_launch.adapters.wmla.submission.args import Arguments, ArgumentsError
from edt_launch.adapters.wmla.submission.catalogue import named
from edt_launch.adapters.wmla.submission.request import ExecRequest
from edt_launch.service.api.context import Context
from edt_launch.service.database.records import ExecRecord, UserRecord
from edt_launch.service.errors import ArchiveError, InvalidError, TooLargeError
from edt_launch.service.names import PLAIN
from edt_launch.service.specification import JobSpec
from edt_launch.service.submission import Submission

MAIN = "main.py"
"""What a script is called that is sent alone and not named."""

NAME_LIMIT = 200
"""Bytes of the path of a script."""

LARGEST_SCRIPT = 2**24
"""Bytes of a script that is sent alone."""


def submit(
    context: Context,
    user: UserRecord,
    asked: ExecRequest,
    code: BinaryIO | None,
    extra: Mapping[str, bytes] | None = None,
    key: str | None = None,
) -> ExecRecord:
    """Queue a job.

    Args:
        context: the service's parts.
        user: whose job it will be.
        asked: what to run, as the client says it.
        code: a tar, plain or gzip, or a single script if `asked.file_name` ends so; it can be sought.
        extra: files to be put into the folder that the script runs in, by their names.
        key: the job's idempotency key.

    Raises:
        ServiceError: it makes no sense, the code cannot be used, or the user may not do that.
        pydantic.ValidationError: a value is none that a job can have.
        OSError: the disk is full, say.
    """
    args, plan, archive = _read(context, user, asked, code)
    record = context.store.execs.reserve(lambda number: _named(number, asked, args, plan))
    try:
        final = replace(plan, names=record)
        spec = final.spec(".", plan.main)
        added = dict(extra or {})
        submission = Submission(user, spec, archive, key, lambda folder: _arrange(folder, final, added))
        job, _ = context.submitter.submit(submission, plan.now)
    except BaseException:
        context.store.execs.release(record.number)
        raise
    context.store.execs.assign(record.number, job.id)
    context.changed()
    return replace(record, job=job.id)


def check(
    context: Context,
    user: UserRecord,
    asked: ExecRequest,
    code: BinaryIO,
    extra: Collection[str],
) -> None:
    """See whether `submit` would take that; no job is made.

    Args:
        context, user, asked, code: as for `submit`.
        extra: names of the files that are going to be put beside the script.

    Raises:
        ServiceError: as `submit`.
        pydantic.ValidationError: likewise.
        OSError: likewise.
    """
    _, plan, archive = _read(context, user, asked, code)
    files = dict.fromkeys(extra, b"")
    spec = plan.spec(".", plan.main)
    context.submitter.rehearse(
        Submission(user, spec, archive, arrange=lambda folder: _arrange(folder, plan, files))
    )


def _read(
    context: Context, user: UserRecord, asked: ExecRequest, code: BinaryIO | None
) -> tuple[str, "_Plan", BinaryIO]:
    """The argument string, what it means and the archive; all that can be checked without unpacking that."""
    try:
        args, arguments = request.read(asked)
        plan = _plan(context, user, asked, arguments)
    except ArgumentsError as error:
        raise InvalidError(str(error)) from None
    if code is None:
        raise InvalidError(
            "no model was sent", "send the model directory as a tar, or a single script, in a part named file"
        )
    archive = _alone(code, plan.main) if asked.file_name.endswith(".py") else code
    context.submitter.check_priority(user, plan.priority)
    return args, plan, archive


@dataclass(frozen=True)
class _Plan:
    """What is known of a job before its code is unpacked."""

    user: str
    framework: Framework
    arguments: Arguments
    bounds: tuple[int, int]
    data_fs: Path
    data_dir: Path
    script: tuple[str, ...]
    now: float
    names: ExecRecord | None = None

    @property
    def main(self) -> str:
        return self.arguments.main or MAIN

    @property
    def priority(self) -> int:
        return sizes.priority(self.arguments.priority)

    def spec(self, directory: str, main: str) -> JobSpec:
        """What to run: the script `main` in `directory`."""
        least, most = self.bounds
        return JobSpec(
            command=[main, *self.script],
            name=self.arguments.name,
            directory=directory,
            min=least,
            max=most,
            priority=self.priority,
            environment=self._environment(),
            framework=self.framework,
            data_dir=str(self.data_dir),
        )

    def _environment(self) -> dict[str, str]:
        ours = {
            "DLI_DATA_FS": str(self.data_fs),
            "DLI_CS_DATASTORE_META": self.arguments.datastore or "type=fs",
            "DLI_LOGGER_LEVEL": self.arguments.level or "info",
            USER_VARIABLE: self.user,
        }
        if self.names is not None:
            ours |= {
                "DLI_EXECID": self.names.id,
                "APP_ID": self.names.app,
                DRIVER_VARIABLE: self.names.driver,
            }
        return {**dict(self.arguments.environment), **ours}


def _plan(context: Context, user: UserRecord, asked: ExecRequest, arguments: Arguments) -> _Plan:
    framework = named(arguments.framework)
    pool = sum(len(host.devices) for host in context.store.hosts.all() if host.is_up)
    data_fs = context.settings.data_folder
    # Programs that were written for 1.2.x want to be told how many workers there may be.
    told = asked.group is not None and framework.is_elastic and arguments.most is not None
    return _Plan(
        user=user.name,
        framework=framework,
        arguments=arguments,
        bounds=sizes.bounds(framework, arguments, pool),
        data_fs=data_fs,
        data_dir=_data_dir(data_fs, arguments.data_path or ""),
        script=("--numWorker", str(arguments.most), *arguments.script) if told else arguments.script,
        now=context.clock(),
    )


def _data_dir(data_fs: Path, path: str) -> Path:
    """DATA_DIR of a job: in the folder for data, wherever links lead."""
    inside = Path(os.path.realpath(data_fs))
    try:
        found = Path(os.path.realpath(inside / path))
    except (OSError, ValueError):
        raise ArgumentsError(f"data_path {path!r:.80} can be no folder") from None
    if not found.is_relative_to(inside):
        raise ArgumentsError(f"data_path {path!r:.80} is not inside the data folder, {data_fs}")
    return found


def _make(data_dir: Path) -> None:
    """See to it that DATA_DIR is there: programs that fetch their data begin with an empty one.

    Raises:
        InvalidError: it is no folder, and cannot be made.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidError(
            f"data_path: {data_dir} is no folder and cannot be made: {error.strerror}",
            "name one that is in the data folder",
        ) from None


def _named(number: int, asked: ExecRequest, args: str, plan: _Plan) -> ExecRecord:
    unique = uuid.uuid4()
    if asked.group is None:
        ids = identity.modern(number, plan.now, unique)
    else:
        ids = identity.classic(plan.user, plan.now, unique)
    return ExecRecord(number, ids.exec, ids.driver, ids.app, args, asked.group)


def _alone(code: BinaryIO, main: str) -> BinaryIO:
    """A script that was sent alone, as the archive that it would be in.

    Raises:
        TooLargeError: it is no script.
    """
    code.seek(0)
    content = code.read(LARGEST_SCRIPT + 1)
    if len(content) > LARGEST_SCRIPT:
        raise TooLargeError(f"the script has more than {LARGEST_SCRIPT:,} bytes", "send a tar")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo(PurePosixPath(main).name or MAIN)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return archive


def _arrange(folder: Path, plan: _Plan, extra: Mapping[str, bytes]) -> JobSpec:
    """Find the script, and put the additional files beside it."""
    place = _work_dir(folder, plan.arguments.folder, plan.main)
    main = plan.main if (place / plan.main).is_file() else PurePosixPath(plan.main).name
    for name, content in extra.items():
        path = place / name
        try:
            path.unlink(missing_ok=True)  # it may be a link
            path.write_bytes(content)
        except IsADirectoryError:
            raise ArchiveError(f"{name!r} is a folder in the model directory", "rename it") from None
    _make(plan.data_dir)
    directory = place.relative_to(folder).as_posix()
    try:
        directory.encode()
    except UnicodeEncodeError:
        shown = ascii(os.fsencode(directory))
        raise ArchiveError(
            f"the archive's folder {shown:.80} has a name that is not UTF-8", "rename it"
        ) from None
    return plan.spec(directory, main)


def _work_dir(folder: Path, model_dir: str, main: str) -> Path:
    """The folder that the script runs in: the model directory, else where the script is found.

    Archives have the model directory as their top folder, or have none, or have one of another name.

    Raises:
        InvalidError: the script is in none of them.
    """
    path = PurePosixPath(main)
    if len(os.fsencode(main)) > NAME_LIMIT:
        raise InvalidError(f"--model-main {main!r:.80}: the name is too long", "shorten it")
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise InvalidError(f"--model-main {main!r:.80} leads out of the model directory")
    tops = [top for top in folder.iterdir() if top.is_dir() and not top.is_symlink()]
    named_so = [top for top in tops if top.name == model_dir]
    for place in (*named_so, folder, *(tops if len(tops) == 1 else [])):
        if (place / path).is_file() or (place / path.name).is_file():
            return place
    raise InvalidError(
        f"--model-main {main!r:.80}: there is no such file in what was sent",
        f"name one of {_scripts(folder)}" if _scripts(folder) else "send the directory that contains it",
    )


def _scripts(folder: Path) -> str:
    names = sorted(path.name for path in [*folder.glob("*.py"), *folder.glob("*/*.py")] if path.is_file())
    return ", ".join(name[:80] for name in names[:5])


def group_name(text: str) -> str:
    """Name of an instance group, as a submission in the manner of 1.2.x gives it: any that is a line of text.

    Raises:
        InvalidError: it is none.
    """
    if not re.fullmatch(f"(?=.){PLAIN}", text) or len(text) > 128:
        raise InvalidError(f"Instance group name {text!r:.80} not found")
    return text
