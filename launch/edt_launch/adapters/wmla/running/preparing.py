"""What a WMLA job finds when it starts: its code, its folders, its names, its variables."""

import contextlib
import importlib.util
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.environment import Identity, JobLayout, of_job
from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.adapters.wmla.running.workers import WmlaWorkers
from edt_launch.core.errors import StartError, UsageError
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.files.plain_files import NoFileError, read
from edt_launch.core.run_dir import RunDir
from edt_launch.core.system.user_name import user_name
from edt_launch.membership.protocol import Resize


@dataclass(frozen=True)
class Prepared:
    """A WMLA job that can be started, and what all of its processes find in their environment besides."""

    layout: JobLayout
    identity: Identity
    variables: Mapping[str, str]

    def workers(self, command: Sequence[str]) -> WmlaWorkers:
        """The processes that run this command."""
        layout = self.layout
        return WmlaWorkers(
            command,
            self.variables,
            layout.work,
            resize=Resize.IN_PLACE if layout.framework.is_elastic else Resize.FIXED,
            has_to_train=layout.framework.is_elastic,
            framework=layout.framework,
            exec_id=self.identity.exec_id,
            result=layout.result,
        )


def prepare(
    paths: RunDir, framework: Framework, code: Path, data_dir: Path | None, inherited: Mapping[str, str]
) -> Prepared:
    """Make a job's folders and copy its code, unless its script is in the copy already.

    Raises:
        UsageError: the code cannot be copied.
        StartError: a folder cannot be made, or the library that programs import is not installed.
    """
    result = ResultDir(paths.root)
    data = data_dir or Path(inherited.get("DATA_DIR") or result.default_data).absolute()
    try:
        for folder in (*result.folders, *([data] if data == result.default_data else [])):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"{error.filename}: {error.strerror}; the job's folders cannot be made") from None
    layout = JobLayout(framework, result, _copied(code, result), data, _fabric_home())
    identity = _identity(result, inherited)
    ours = of_job(inherited, layout, identity, os.getuid(), os.getgid())
    return Prepared(layout, identity, ours)


def _copied(code: Path, result: ResultDir) -> Path:
    """The folder to run in: a copy of `code`, made anew, unless that is in the job's copy already."""
    code = code.resolve()
    inside = result.code.resolve()
    if code.is_relative_to(inside):
        return code
    if not code.name:
        raise UsageError(f"{code} is no folder of a program: put the script into one of its own")
    copy, beside = inside / code.name, inside / f".{code.name}.part"
    root = str(result.root.resolve())
    try:
        _remove(beside)
        shutil.copytree(code, beside, symlinks=True, ignore=lambda at, names: _left_out(root, at, names))
        _settle(beside, code)
        _remove(copy)
        beside.rename(copy)
    except (OSError, shutil.Error) as error:
        with contextlib.suppress(OSError):
            _remove(beside)
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error
        raise UsageError(f"{code} cannot be copied to {copy}: {reason}") from None
    return copy


def _left_out(root: str, folder: str, names: list[str]) -> list[str]:
    """What is not copied: jobs' results inside the code, and what is neither file nor folder nor link."""

    def is_copied(path: Path) -> bool:
        is_of_a_job = str(path) == root or RunDir(path).launcher.is_file()
        return (path.is_symlink() or path.is_file() or path.is_dir()) and not is_of_a_job

    return [name for name in names if not is_copied(Path(folder, name))]


def _remove(folder: Path) -> None:
    """Remove a folder, if it is there, though parts of it may be read-only."""
    if folder.exists():
        _make_writable(folder)
        shutil.rmtree(folder)


def _make_writable(folder: Path) -> None:
    for at, _, _ in os.walk(folder):
        os.chmod(at, os.stat(at).st_mode | stat.S_IRWXU)


def _settle(copy: Path, code: Path) -> None:
    """Let programs write into the copy of `code`, and its relative links find what is outside of it."""
    _make_writable(copy)
    for at, folders, files in os.walk(copy):
        inside = os.path.relpath(at, copy)
        for name in (*folders, *files):
            path = Path(at, name)
            if path.is_symlink() and _leads_out(inside, os.readlink(path)):
                path.unlink()
                path.symlink_to(os.path.realpath(code / inside / name))


def _leads_out(inside: str, target: str) -> bool:
    """Whether a relative link leads out of the code; `inside` is its folder, relative to the code."""
    return os.path.normpath(os.path.join(inside, target)).split(os.sep)[0] == os.pardir


def _fabric_home() -> Path:
    """FABRIC_HOME, a folder of the training library, which is found without being imported."""
    spec = importlib.util.find_spec("edt_hvd")
    if spec is None or spec.origin is None:
        raise StartError(
            "edt_hvd is not installed beside edt_launch: install both, they are one distribution"
        )
    return Path(spec.origin).parent / "wmla" / "fabric_home"


def _identity(result: ResultDir, inherited: Mapping[str, str]) -> Identity:
    new = Identity.new(user_name(), time.strftime("%Y%m%d%H%M%S"), uuid.uuid4())
    try:
        kept = json.loads(read(result.identity))
    except (FileNotFoundError, NoFileError, ValueError):
        kept = {}
    identity = new.known_as(inherited, kept if isinstance(kept, dict) else {})
    write_atomically(result.identity, json.dumps(identity.as_json()) + "\n")
    return identity
