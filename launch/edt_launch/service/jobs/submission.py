"""Submitting a job: its code is copied, then it is written down; with the same key it stays one job."""

import base64
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

import structlog

from edt_launch.cluster.network import HostChecker
from edt_launch.core.files.ignoring import IgnoreFileError, ignored
from edt_launch.core.scripts import Which, needed_script, script_problem
from edt_launch.core.system import environments
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.home import JOB_ID, Home, JobDir
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.db.store import Store
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError
from edt_launch.service.experiments.records import RunRecord
from edt_launch.service.files.archives.archive import BLOCK, unpack
from edt_launch.service.files.archives.copying import copy_folder
from edt_launch.service.files.archives.deleting import delete_folder
from edt_launch.service.files.archives.entry import ArchiveLimits
from edt_launch.service.files.results import note_submitted, remove_made
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.specification import MAX_PRIORITY, JobSpec
from edt_launch.service.jobs.states import ENDED, State

log = structlog.get_logger()


@dataclass(frozen=True)
class Submission:
    """A job that a user wants to submit.

    Attributes:
        code: an archive of its code, which can be sought, if there is one.
        key: the same for each attempt to submit the same job; None if it is not repeated.
        run: of an experiment, which the job is; None if it is none.
        arrange: is given the folder of the unpacked code, may add to it, and says what to run; None: `spec`.
    """

    user: UserRecord
    spec: JobSpec
    code: BinaryIO | None = None
    key: str | None = None
    run: RunRecord | None = None
    arrange: Callable[[Path], JobSpec] | None = None

    @cached_property
    def code_digest(self) -> str:
        """Tells the code from another one; empty without an archive."""
        return "" if self.code is None else digest(self.code)

    @property
    def fingerprint(self) -> str:
        """Tells a repeated submission from another one: of the specification and the code."""
        return self.spec.fingerprint(self.code_digest)


def digest(code: BinaryIO) -> str:
    """Tells an archive from another one; when it was packed makes no difference."""
    code.seek(0)
    head = code.read(8)
    content = hashlib.sha256(
        head[:4] if head.startswith(b"\x1f\x8b") else head
    )  # gzip's time is what follows
    while block := code.read(BLOCK):
        content.update(block)
    return content.hexdigest()


def new_id() -> str:
    """An id of a job that nobody can guess: `home.JOB_ID`."""
    return _id(secrets.token_bytes(5))


def id_of(text: str) -> str:
    """An id as of `new_id` that is always the same for a text."""
    return _id(hashlib.sha256(text.encode()).digest()[:5])


def _id(content: bytes) -> str:
    return "j" + base64.b32encode(content).decode().lower()


def record_of(submission: Submission, job_id: str, now: float) -> JobRecord:
    """The job as it is first written down."""
    spec = submission.spec
    sizes = spec.sizes
    most = sizes.min if sizes.max is None else sizes.max
    own = {"command": tuple(spec.command), "min": sizes.min, "max": most, "allowed": sizes.allowed}
    own |= {"after": tuple(dict.fromkeys(spec.after)), "tags": tuple(spec.tags)}
    return JobRecord(
        **spec.model_dump(exclude={"path", "code_of", "checkpoint"}) | own,
        id=job_id,
        owner=submission.user.name,
        submitted=now,
        code_digest=submission.code_digest,
        idempotency_key=submission.key,
        fingerprint=submission.fingerprint,
        waiting_since=now,
        usage_at=now,
    )


OF_ONE_SUBMISSION = frozenset({"after", "array_id", "array_index", "array_limit", "begin"})
"""What another job like one does not get."""


def like(job: JobRecord, **changes: Any) -> JobSpec:
    """A job with the submitted files and settings of another one, but for `changes`; as `JobSpec` raises."""
    names = JobSpec.model_fields.keys() & vars(job).keys() - OF_ONE_SUBMISSION
    own = {name: getattr(job, name) for name in names}
    return JobSpec.model_validate({**own, **changes, "code_of": job.id})


class Submitter:
    """Takes submissions in.

    Others than administrators may give no more than `highest_priority`; the user `own_name` may have folders
    of this machine copied, as administrators may.
    """

    def __init__(
        self,
        home: Home,
        store: Store,
        limits: ArchiveLimits,
        own_name: str,
        highest_priority: int = MAX_PRIORITY,
    ) -> None:
        self._home = home
        self._store = store
        self._limits = limits
        self._own_name = own_name
        self._highest_priority = highest_priority

    def submit(self, submission: Submission, now: float) -> tuple[JobRecord, bool]:
        """Copy the code and write the job down; gives the job, and whether it is new.

        Raises:
            ServiceError: the code cannot be used, the user may not do that, or the key is another job's.
            OSError: the disk is full, say.
        """
        self.check(submission)
        if submission.key is not None:
            earlier = self._store.jobs.submitted_as(submission.user.name, submission.key)
            if earlier is not None:
                return _same(earlier, submission), False
        job_id = new_id()
        incoming = JobDir(self._home.incoming / job_id)
        final = self._home.job(job_id)
        try:
            submission = self._fill(incoming, submission)
            incoming.root.rename(final.root)
            self._store.shares.add_missing(ShareRecord(submission.user.name, usage_at=now))
            record = replace(record_of(submission, job_id, now), code_digest=self._digest_of(submission))
            job, is_new = self._store.jobs.add(record, submission.run)
        except BaseException:
            for folder in (incoming.root, final.root):
                delete_folder(folder)
            raise
        if not is_new:  # another attempt was quicker
            delete_folder(final.root)
            return _same(job, submission), False
        return job, True

    def rehearse(self, submission: Submission) -> None:
        """See whether `submit` would take a submission, and raise what it would; no job is made."""
        self.check(submission)
        folder = JobDir(self._home.incoming / new_id())
        try:
            self._fill(folder, submission)
        finally:
            delete_folder(folder.root)

    def check(self, submission: Submission) -> None:
        """See whether the user may submit that; raises `ServiceError` if not, or if it makes no sense."""
        self.check_priority(submission.user, submission.spec.priority)
        spec = submission.spec
        sources = {"path": spec.path, "code_of": spec.code_of, "code": submission.code}
        given = [name for name, source in sources.items() if source is not None]
        if len(given) > 1:
            raise InvalidError(f"{' and '.join(given)} are both given", "give one of them")
        if spec.code_of is not None:
            self._check_source(submission.user, spec.code_of)
        self._check_awaited(spec.after)
        if spec.path is None:
            return
        if not submission.user.is_admin and submission.user.name != self._own_name:
            raise ForbiddenError(
                "path: only administrators may have folders of the service's machine copied",
                "send the code as an archive",
            )

    def _digest_of(self, submission: Submission) -> str:
        """The digest of the code, whether it was sent or is another job's."""
        source = submission.spec.code_of
        return submission.code_digest if source is None else self._store.jobs.get(source).code_digest

    def _check_source(self, user: UserRecord, job_id: str) -> None:
        job = self._store.jobs.some([job_id]).get(job_id)
        if job is None:
            raise InvalidError(f"code_of: there is no job {job_id!r}", "`edt ps --all` lists them")
        if not user.may_act_for(job.owner):
            raise ForbiddenError(f"code_of: {job.id} is a job of {job.owner}", "ask them for the code")

    def _check_awaited(self, awaited: Sequence[str]) -> None:
        """See whether the jobs that a new one waits for can still succeed; raises `InvalidError` if not."""
        known = self._store.jobs.some(awaited)
        for job_id in awaited:
            if job_id not in known:
                raise InvalidError(f"after: there is no job {job_id!r}", "`edt ps --all` lists them")
            state = known[job_id].state
            if state in ENDED - {State.SUCCEEDED}:
                raise InvalidError(f"after: {job_id} has {state}, and cannot succeed", "leave it out")

    def check_priority(self, user: UserRecord, priority: int) -> None:
        """See whether a user may give a job that priority; raises `ForbiddenError` if not."""
        if priority > self._highest_priority and not user.is_admin:
            raise ForbiddenError(
                f"priority: {priority} is above {self._highest_priority}, the highest that you may give",
                "ask an administrator to raise it",
            )

    def _fill(self, folder: JobDir, submission: Submission) -> Submission:
        """Put everything into the job's folder; gives what finally is to run."""
        folder.root.mkdir(parents=True)
        if submission.code is not None:
            unpack(submission.code, folder.code, self._limits)
        elif submission.spec.path is not None:
            copy_folder(Path(submission.spec.path), folder.code, self._limits, _ignored(submission.spec.path))
        elif submission.spec.code_of is not None:
            source = self._home.job(submission.spec.code_of)
            if source.code.is_symlink():
                raise InvalidError(
                    f"code_of: {submission.spec.code_of} has a link in the place of its code", "send the code"
                )
            copy_folder(source.code, folder.code, self._limits)
            remove_made(folder.code, source)
        for path in folder.folders:
            path.mkdir(parents=True, exist_ok=True)
        if submission.spec.checkpoint is not None:
            self._copy_checkpoint(folder, str(submission.spec.code_of), submission.spec.checkpoint)
        if submission.arrange is not None:
            submission = replace(submission, spec=submission.arrange(folder.code))
        note_submitted(folder)
        directory = submission.spec.directory
        inside = os.path.realpath(folder.code)
        start = os.path.realpath(folder.code / directory)
        if not os.path.isdir(start) or os.path.commonpath([inside, start]) != inside:
            raise InvalidError(
                f"directory: {directory!r} is no folder of the submitted code",
                "name one that is in it, or none",
            )
        self._check_command(submission.spec, Path(start))
        return submission

    def _check_command(self, spec: JobSpec, folder: Path) -> None:
        """See whether a command can run in a folder of the code; raises `InvalidError` if not.

        Where jobs may run on other machines, what is outside the code is not judged.
        """
        which = partial(shutil.which, path=environments.search_path(os.environ, spec.environment))
        error = _command_error(spec, folder, which)
        if error is not None and not self._stay_here():
            error = _command_error(spec, folder, None)
        if error is not None:
            raise error

    def _stay_here(self) -> bool:
        """Whether all hosts that jobs may have are known, and are this machine."""
        hosts, is_here = self._store.hosts.all(), HostChecker().is_this_machine
        return bool(hosts) and all(is_here(host.name) for host in hosts)

    def _copy_checkpoint(self, folder: JobDir, job_id: str, name: str) -> None:
        source = self._home.job(job_id).output.checkpoint / name
        if source.is_symlink() or not source.is_dir():
            raise InvalidError(
                f"checkpoint: {job_id} has no {name!r}", f"GET /api/v1/jobs/{job_id}/checkpoints lists them"
            )
        copy_folder(source, folder.output.checkpoint / name, self._limits)


def _command_error(spec: JobSpec, folder: Path, which: Which | None) -> InvalidError | None:
    script = needed_script(spec.command)
    is_seen = script is not None and (which is not None or not os.path.isabs(script))
    if script is not None and is_seen and not os.path.exists(folder / script):
        return InvalidError(
            f"command: {script!r} is not a file of the submitted code", "name a script that is in it"
        )
    problem = script_problem(spec.command, folder, which) if spec.framework is None else None
    return None if problem is None else InvalidError(f"command: {problem.text}", problem.advice)


def _same(earlier: JobRecord, submission: Submission) -> JobRecord:
    if earlier.fingerprint != submission.fingerprint:
        raise ConflictError(
            f"this Idempotency-Key was used for another job, {earlier.id}",
            "use another key for another job",
        )
    return earlier


def remove_files(home: Home, job_id: str) -> Callable[[], None]:
    """Take a job's files away at once; what is returned deletes them, which may take a while."""
    try:
        trash = _throw_away(home, job_id)
    except OSError as error:  # the next start throws away what no job has
        if not isinstance(error, FileNotFoundError):
            log.warning("a job's folder cannot be thrown away", job=job_id, reason=str(error))
        return lambda: None
    return lambda: delete_folder(trash)


def _ignored(path: str) -> Callable[[str], bool]:
    try:
        return ignored(Path(path))
    except IgnoreFileError as error:
        raise InvalidError(f"path: {error.text}", error.advice) from None


def remove_strays(home: Home, store: Store) -> list[str]:
    """Throw away folders that no job has, and tell their names.

    A service was killed just before a job was written down, or just after one was deleted.
    """
    folders = {path.name for path in home.jobs.iterdir() if re.fullmatch(JOB_ID, path.name)}
    strays = sorted(folders - store.jobs.ids())
    for stray in strays:
        _throw_away(home, stray)
    return strays


def _throw_away(home: Home, job_id: str) -> Path:
    return home.job(job_id).root.rename(home.trash / f"{job_id}.{secrets.token_hex(4)}")
