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
from edt_launch.adapters.wmla.submission import catalogue
from edt_launch.adapters.wmla.submission.args import Arguments, ArgumentsError
from edt_launch.adapters.wmla.submission.request import NAME_LIMIT, ExecRequest, read
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.store import Store
from edt_launch.service.errors import ArchiveError, InvalidError, TooLargeError
from edt_launch.service.experiments.records import RunRecord
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.records import ExecRecord
from edt_launch.service.jobs.specification import JobSpec
from edt_launch.service.jobs.submission import Submission
from edt_launch.service.names import PLAIN

MAIN = "main.py"
"""What a script is called that is sent alone and not named."""

LARGEST_SCRIPT = 2**24  # bytes of a script that is sent alone


def submit(
    context: Context,
    user: UserRecord,
    asked: ExecRequest,
    code: BinaryIO | None,
    extra: Mapping[str, bytes] | None = None,
    run: RunRecord | None = None,
) -> ExecRecord:
    """Queue a job.

    Args:
        context, user: the service's parts; whose job it will be.
        asked: what to run, as the client says it.
        code: a tar, plain or gzip, or a single script if `asked.file_name` ends so; it can be sought.
        extra: files to be put into the folder that the script runs in, by their names.
        run: of a search, which the job is.

    Raises:
        ServiceError: it makes no sense, the code cannot be used, or the user may not do that.
        pydantic.ValidationError: a value is none that a job can have.
        OSError: the disk is full, say.
    """
    plan, archive = _read(context, user, asked, code)

    def named(number: int) -> ExecRecord:
        unique = uuid.uuid4()
        if asked.group is None:
            names = identity.modern(number, plan.now, unique)
        else:
            names = identity.classic(number, user.name, plan.now, unique)
        return replace(names, args=plan.args, group=asked.group)

    record = context.store.execs.reserve(named)
    try:
        ids = {"DLI_EXECID": record.id, "APP_ID": record.app, DRIVER_VARIABLE: record.driver}
        submission = _submission(
            user, replace(plan, environment=plan.environment | ids), archive, extra or {}
        )
        named_run = run and replace(run, exec=record.id, driver=record.driver)
        job, _ = context.submitter.submit(replace(submission, run=named_run), plan.now)
    except BaseException:
        context.store.execs.release(record.number)
        raise
    context.store.execs.assign(record.number, job.id)
    context.changed()
    return replace(record, job=job.id)


def settle(store: Store) -> None:
    """Put in order what a service leaves that is killed in `submit`: names of which no job is known.

    They are given to the job that was made for them, or up; while nothing is being taken in.
    """
    reserved = store.execs.reserved()
    if not reserved:
        return
    jobs = {
        job.environment.get(DRIVER_VARIABLE): job.id for job in store.jobs.page(JobQuery(limit=None)).jobs
    }
    for names in reserved:
        if names.driver in jobs:
            store.execs.assign(names.number, jobs[names.driver])
        else:
            store.execs.release(names.number)


def check(
    context: Context, user: UserRecord, asked: ExecRequest, code: BinaryIO, extra: Collection[str]
) -> None:
    """See whether `submit` would take that, with files of the names in `extra`; raises the same errors."""
    plan, archive = _read(context, user, asked, code)
    context.submitter.rehearse(_submission(user, plan, archive, dict.fromkeys(extra, b"")))


@dataclass(frozen=True)
class _Plan:
    """What is known of a job before its code is unpacked."""

    args: str
    arguments: Arguments
    framework: Framework
    bounds: tuple[int, int]
    data_dir: Path
    script: tuple[str, ...]
    environment: dict[str, str]
    now: float

    @property
    def main(self) -> str:
        return self.arguments.main or MAIN

    def spec(self, directory: str, main: str) -> JobSpec:
        """What to run: the script `main` in `directory`."""
        least, most = self.bounds
        return JobSpec(
            command=[main, *self.script],
            name=self.arguments.name,
            directory=directory,
            min=least,
            max=most,
            priority=catalogue.priority(self.arguments.priority),
            environment=self.environment,
            framework=self.framework,
            data_dir=str(self.data_dir),
        )


def _read(
    context: Context, user: UserRecord, asked: ExecRequest, code: BinaryIO | None
) -> tuple[_Plan, BinaryIO]:
    """The job and the archive; all that can be checked without unpacking that."""
    try:
        args, arguments = read(asked)
        plan = _plan(context, user, asked, args, arguments)
    except ArgumentsError as error:
        raise InvalidError(str(error)) from None
    if code is None:
        raise nothing_sent()
    archive = code
    if asked.file_name.endswith(".py"):
        # Clients name it with the path that it has at theirs.
        plan = replace(plan, arguments=replace(arguments, main=PurePosixPath(arguments.main).name))
        archive = _alone(code, plan.main)
    context.submitter.check_priority(user, catalogue.priority(arguments.priority))
    return plan, archive


def nothing_sent() -> InvalidError:
    """The error of a submission without code."""
    advice = "send the model directory as a tar, or a single script, in a part named file"
    return InvalidError("no model was sent", advice)


def _plan(context: Context, user: UserRecord, asked: ExecRequest, args: str, arguments: Arguments) -> _Plan:
    framework = catalogue.named(arguments.framework)
    data_fs, script = context.settings.data_folder, arguments.script
    # Programs that were written for 1.2.x want to be told how many workers there may be.
    if asked.group is not None and framework.is_elastic and arguments.most is not None:
        script = ("--numWorker", str(arguments.most), *script)
    return _Plan(
        args=args,
        arguments=arguments,
        framework=framework,
        bounds=catalogue.bounds(framework, arguments, pool_size(context.store)),
        data_dir=_data_dir(data_fs, arguments.data_path or ""),
        script=script,
        environment={
            **dict(arguments.environment),
            "DLI_DATA_FS": str(data_fs),
            "DLI_CS_DATASTORE_META": arguments.datastore or "type=fs",
            "DLI_LOGGER_LEVEL": arguments.level or "info",
            USER_VARIABLE: user.name,
        },
        now=context.clock(),
    )


def pool_size(store: Store) -> int:
    """How many devices there are."""
    return sum(len(host.devices) for host in store.hosts.all() if host.is_up)


def _submission(user: UserRecord, plan: _Plan, archive: BinaryIO, extra: Mapping[str, bytes]) -> Submission:
    spec = plan.spec(".", plan.main)
    return Submission(user, spec, archive, arrange=lambda folder: _arrange(folder, plan, extra))


def _data_dir(data_fs: Path, path: str) -> Path:
    """DATA_DIR of a job: in the folder for data, wherever links lead."""
    inside = Path(os.path.realpath(data_fs))
    try:
        data_dir = Path(os.path.realpath(inside / path))
    except (OSError, ValueError):
        raise ArgumentsError(f"data_path {path!r:.80} can be no folder") from None
    if not data_dir.is_relative_to(inside):
        raise ArgumentsError(f"data_path {path!r:.80} is not inside the data folder, {data_fs}")
    return data_dir


def _alone(code: BinaryIO, main: str) -> BinaryIO:
    """A script that was sent alone, as the archive that it would be in."""
    code.seek(0)
    content = code.read(LARGEST_SCRIPT + 1)
    if len(content) > LARGEST_SCRIPT:
        raise TooLargeError(f"the script has more than {LARGEST_SCRIPT:,} bytes", "send a tar")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo(main)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return archive


def _arrange(folder: Path, plan: _Plan, extra: Mapping[str, bytes]) -> JobSpec:
    """Find the script, put the additional files beside it, and see to it that DATA_DIR is there.

    Programs that fetch their data begin with an empty one.
    """
    work_dir = _work_dir(folder, plan.arguments.folder, plan.main)
    main = plan.main if (work_dir / plan.main).is_file() else PurePosixPath(plan.main).name
    for name, content in extra.items():
        path = work_dir / name
        try:
            path.unlink(missing_ok=True)  # it may be a link
            path.write_bytes(content)
        except IsADirectoryError:
            raise ArchiveError(f"{name!r} is a folder in the model directory", "rename it") from None
    try:
        plan.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidError(
            f"data_path: {plan.data_dir} is no folder and cannot be made: {error.strerror}",
            "name one that is in the data folder",
        ) from None
    directory = work_dir.relative_to(folder).as_posix()
    try:
        directory.encode()
    except UnicodeEncodeError:
        shown = ascii(os.fsencode(directory))
        text = f"the archive's folder {shown:.80} has a name that is not UTF-8"
        raise ArchiveError(text, "rename it") from None
    return plan.spec(directory, main)


def _work_dir(folder: Path, model_dir: str, main: str) -> Path:
    """The folder that the script runs in: the model directory, else where the script is found.

    Archives have the model directory as their top folder, or have none, or have one of another name.
    """
    path = PurePosixPath(main)
    if len(os.fsencode(main)) > NAME_LIMIT:
        raise InvalidError(f"--model-main {main!r:.80}: the name is too long", "shorten it")
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise InvalidError(f"--model-main {main!r:.80} leads out of the model directory")
    tops = [top for top in folder.iterdir() if top.is_dir() and not top.is_symlink()]
    model_dirs = [top for top in tops if top.name == model_dir]
    for candidate in (*model_dirs, folder, *(tops if len(tops) == 1 else [])):
        if (candidate / path).is_file() or (candidate / path.name).is_file():
            return candidate
    scripts = [path.name for path in [*folder.glob("*.py"), *folder.glob("*/*.py")] if path.is_file()]
    some = ", ".join(name[:80] for name in sorted(scripts)[:5])
    raise InvalidError(
        f"--model-main {main!r:.80}: there is no such file in what was sent",
        f"name one of {some}" if some else "send the directory that contains it",
    )


def group_name(text: str) -> str:
    """Check the name of an instance group, as 1.2.x gives it: any line of text is one."""
    if not re.fullmatch(f"(?=.){PLAIN}", text) or len(text) > 128:
        raise InvalidError(f"Instance group name {text!r:.80} not found")
    return text
