import gzip
import io
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from edt_launch.cluster.network import HostChecker
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.errors import ArchiveError, ForbiddenError, InvalidError, ServiceError
from edt_launch.service.files.archives.entry import ArchiveLimits
from edt_launch.service.jobs.specification import JobSpec
from edt_launch.service.jobs.submission import Submission, Submitter, digest, remove_strays
from world import World, member, tar, tar_of

ANN = UserRecord("ann")


@pytest.fixture
def submitter(world: World, monkeypatch: pytest.MonkeyPatch) -> Submitter:
    """Of a service on node1, its only host."""
    checker = partial(HostChecker, resolve={"node1": "127.0.0.1"}.get)
    monkeypatch.setattr("edt_launch.service.jobs.submission.HostChecker", checker)
    return Submitter(world.settings.paths, world.store, ArchiveLimits(10_000, 10), "carl", highest_priority=5)


def spec(**fields: object) -> JobSpec:
    return JobSpec.model_validate({"command": ["python", "train.py"], **fields})


def submission(code: bytes | None = None, key: str | None = None, **fields: object) -> Submission:
    content = tar({"train.py": b"print()", "lib/x.py": b""}) if code is None else code
    return Submission(ANN, spec(**fields), io.BytesIO(content), key)


def left(world: World) -> list[Path]:
    paths = world.settings.paths
    return [*paths.jobs.iterdir(), *paths.incoming.iterdir()]


def test_packed_again_the_same_code_has_the_same_digest() -> None:
    files = tar({"train.py": b"print()"}, "w")
    packed = [gzip.compress(files, mtime=time) for time in (1, 2)]
    assert packed[0] != packed[1]
    assert digest(io.BytesIO(packed[0])) == digest(io.BytesIO(packed[1]))
    others = (files, gzip.compress(tar({"train.py": b"other"}, "w"), mtime=1), b"")
    assert len({digest(io.BytesIO(one)) for one in (packed[0], *others)}) == 4


@pytest.mark.parametrize(
    "wrong, error",
    [
        (submission(code=b"nonsense"), ArchiveError),
        (submission(code=tar({"../x": b""})), ArchiveError),
        (submission(directory="train.py"), InvalidError),
        (submission(directory="lib"), InvalidError),  # where the script is not
        (submission(command=["python3.99", "train.py"]), InvalidError),
        (submission(command=["sh", "./lib"]), InvalidError),
        (submission(priority=6), ForbiddenError),
        (Submission(ANN, spec(path="/")), ForbiddenError),
        (Submission(UserRecord("carl"), spec(path="/no/such")), InvalidError),
        (Submission(ANN, spec(path="/"), io.BytesIO(b"")), InvalidError),
    ],
)
def test_a_refused_submission_leaves_nothing(
    world: World, submitter: Submitter, wrong: Submission, error: type[ServiceError]
) -> None:
    with pytest.raises(error):
        submitter.submit(wrong, 5.0)
    assert left(world) == []
    assert world.store.jobs.page().jobs == []


def test_a_command_is_looked_for_where_the_job_will(
    world: World, submitter: Submitter, tmp_path: Path
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    found = {"command": ["tool"], "environment": {"PATH": str(tmp_path)}}
    assert submitter.submit(submission(**found), 5.0)[1]
    with pytest.raises(InvalidError, match="tool: command not found"):
        submitter.submit(submission(command=["tool"]), 5.0)


@pytest.mark.parametrize(
    "command, is_refused",
    [
        (["python", "/data/train.py"], False),
        (["tool"], False),
        (["./run.sh"], False),
        (["./missing.sh"], True),
    ],
)
def test_what_other_hosts_have_is_not_judged(
    world: World, submitter: Submitter, command: list[str], is_refused: bool
) -> None:
    run = tar_of([(member("run.sh", size=17, mode=0o755), b"#!/no/such/shell\n")], "w:gz")
    with pytest.raises(InvalidError):
        submitter.submit(submission(run, command=command), 5.0)
    world.store.hosts.put([HostRecord("node2", ("0",))])
    with pytest.raises(InvalidError) if is_refused else nullcontext():
        submitter.submit(submission(run, command=command), 5.0)


def test_code_whose_place_a_link_has_taken_is_not_copied(
    world: World, submitter: Submitter, tmp_path: Path
) -> None:
    first = submitter.submit(submission(), 5.0)[0]
    code = world.files(first.id).code
    code.rename(tmp_path / "elsewhere")
    code.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidError, match="has a link in the place of its code"):
        submitter.submit(Submission(ANN, spec(code_of=first.id)), 6.0)


def test_nothing_is_left_if_the_database_fails(
    world: World, submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr(world.store.jobs, "add", fail)
    with pytest.raises(KeyError):
        submitter.submit(submission(), 5.0)
    assert left(world) == []


def test_a_directory_inside_the_code_may_be_a_link_but_not_lead_out(
    world: World, submitter: Submitter, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / "lib" / "train.py").touch()
    (code / "inside").symlink_to("lib")
    (code / "outside").symlink_to("/tmp")
    (code / ".git").mkdir()
    (code / "big.bin").write_bytes(bytes(20_000))
    (code / ".edtignore").write_text("*.bin\r\n", encoding="utf-8-sig")
    admin = UserRecord("admin", is_admin=True)
    job, is_new = submitter.submit(Submission(admin, spec(path=str(code), directory="inside")), 5.0)
    assert is_new
    copied = {path.name for path in world.settings.paths.job(job.id).code.iterdir()}
    assert copied == {"lib", "inside", "outside", ".edtignore"}
    with pytest.raises(InvalidError, match="outside"):
        submitter.submit(Submission(admin, spec(path=str(code), directory="outside")), 5.0)


def test_folders_that_no_job_has_are_thrown_away(world: World, submitter: Submitter) -> None:
    job, _ = submitter.submit(submission(), 5.0)
    home = world.settings.paths
    (home.job("jaaaaaaaa").root / "log").mkdir(parents=True)
    home.identity.touch()
    assert remove_strays(home, world.store) == ["jaaaaaaaa"]
    assert {path.name for path in home.jobs.iterdir()} == {job.id, home.identity.name}
    assert [path.name.partition(".")[0] for path in home.trash.iterdir()] == ["jaaaaaaaa"]
    assert remove_strays(home, world.store) == []
