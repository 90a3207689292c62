import json
from pathlib import Path

import pytest

from cli_service import TRAIN, CliService
from edt_launch.cli.commands import submit as command
from edt_launch.service.jobs.states import State
from ended import Edt


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of code, which is the present one."""
    folder = tmp_path / "my code's"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "lib" / "big.bin").write_bytes(bytes(range(256)) * 2000)
    (folder / ".edtignore").write_text("*.ckpt\n")
    (folder / "x.ckpt").write_text("x")
    monkeypatch.chdir(folder)
    return folder


def test_submit_prints_the_id_and_sends_the_code(edt: Edt, service: CliService, code: Path) -> None:
    ended = edt("submit", "--min", "1", "--max", "4", "--", "python", "train.py", "--lr", "0.1")
    (job,) = service.submitted()
    assert (ended.code, ended.out) == (0, f"{job.id}\n")
    assert "code: 3 files, 512 kB" in ended.err
    assert f"edt why {job.id}" in ended.err
    assert (job.name, job.command, job.min, job.max) == ("train", ("python", "train.py", "--lr", "0.1"), 1, 4)
    sent = service.files(job.id).code
    assert (sent / "lib" / "big.bin").read_bytes() == (code / "lib" / "big.bin").read_bytes()
    assert {str(path.relative_to(sent)) for path in sent.rglob("*")} == {
        ".edtignore", "train.py", "lib", "lib/big.bin",
    }  # fmt: skip


def test_a_job_goes_on_from_a_checkpoint_of_another_one(
    edt: Edt, service: CliService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer = (f"step-{step:08}" for step in (10, 20))
    for name in (older, newer):
        (service.files(TRAIN).output.checkpoint / name).mkdir()
    (service.files(TRAIN).code / "train.py").touch()
    monkeypatch.chdir(tmp_path)  # where there is no script
    for words, names in (
        (("--checkpoint", "newest"), [newer]), (("--checkpoint", older), [older]), ((), []),
    ):  # fmt: skip
        assert edt("submit", "--code-of", TRAIN, *words, "--", "python", "train.py").code == 0
        files = service.files(service.submitted()[-1].id)
        assert (files.code / "train.py").is_file()
        assert [path.name for path in files.output.checkpoint.iterdir()] == names


def test_everything_can_be_said(
    edt: Edt, service: CliService, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "m")
    words = (
        "--name n --priority 2 --weight 3 --allowed 4,2 --env A=b=c --env MINE --directory lib "
        "--checkpoint-interval 60 --max-restarts 2 --min 2 --max 4 --framework edtPyTorch --data-dir /d"
    )
    (code / "lib" / "run.py").touch()
    assert edt("submit", *words.split(), "./run.py").code == 0
    (job,) = service.submitted()
    said = {
        "name": "n", "command": ("./run.py",), "min": 2, "max": 4, "priority": 2, "weight": 3.0,
        "allowed": (2, 4), "environment": {"A": "b=c", "MINE": "m"}, "directory": "lib",
        "checkpoint_interval": 60.0, "max_restarts": 2, "framework": "edtPyTorch", "data_dir": "/d",
    }  # fmt: skip
    assert {name: getattr(job, name) for name in said} == said


def test_a_dry_run_shows_what_would_change_and_submits_nothing(
    edt: Edt, service: CliService, code: Path
) -> None:
    service.log_on("ann")
    ended = edt("submit", "--dry-run", "--min", "2", "--", "python", "train.py")
    assert ended.out.splitlines()[0].split() == ["JOB", "NAME", "OWNER", "NOW", "THEN"]
    assert ended.out.splitlines()[1].split()[:3] == ["(new)", "train", "ann"]
    assert "nothing has been submitted" in ended.err
    assert service.submitted() == []
    assert json.loads(edt("submit", "--dry-run", "--json", "--", "x").out)["changes"]


def test_a_broken_connection_is_tried_again_and_submits_one_job(
    edt: Edt, service: CliService, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PAUSES", (0.0, 0.0))
    service.broken = 1
    ended = edt("submit", "--", "python", "train.py")
    (job,) = service.submitted()
    assert ended.out == f"{job.id}\n", ended.err
    assert "trying again" in ended.err
    assert [method for method, _ in service.asked].count("POST") == 2


def test_following_shows_the_output_and_ends_as_the_job_does(
    edt: Edt, service: CliService, code: Path
) -> None:
    def fail() -> None:
        for job in service.submitted():
            service.files(job.id).launcher_log.write_text("[0] hello\n")
            service.store.jobs.record({job.id: {"failure": "rank 0: oops", "resizes": 2}})
            service.go(job.id, State.FAILED)

    service.at_request = fail
    ended = edt("submit", "--follow", "--", "python", "train.py")
    (job,) = service.submitted()
    assert (ended.code, ended.out) == (1, "[0] hello\n")
    assert ended.err.splitlines()[-2:] == [f"{job.id} failed, 2 resizes", "rank 0: oops"]


def test_what_the_hosts_have_is_not_looked_for_here(edt: Edt, service: CliService, code: Path) -> None:
    assert edt("submit", "--", "python", "/shared/train.py").code == 0


@pytest.mark.parametrize("words", ["nosuch.py", "python3 -u -X dev nosuch.py --lr 1"])
def test_a_script_that_is_not_in_the_code_is_refused_before_it_is_sent(
    edt: Edt, service: CliService, code: Path, words: str
) -> None:
    ended = edt("submit", "--", *words.split())
    assert ended.code == 2
    assert "nosuch.py is not a file in" in " ".join(ended.err.split())
    assert service.submitted() == []


@pytest.mark.parametrize(
    "words",
    [
        ("--min", "4", "--max", "2", "x"),
        ("--allowed", "1,x", "x"),
        ("--env", "NOT_SET_ANYWHERE", "x"),
        ("--path", "/a", "--code", ".", "x"),
        (),
    ],
)
def test_mistakes_send_nothing(edt: Edt, service: CliService, code: Path, words: tuple[str, ...]) -> None:
    ended = edt("submit", *words)
    assert ended.code == 2
    assert service.submitted() == []


def test_nobody_sends_the_home_folder_by_mistake(
    edt: Edt, service: CliService, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(code))
    ended = edt("submit", "x")
    assert ended.code == 2
    assert "is not a folder of code" in " ".join(ended.err.split())
    assert edt("submit", "--code", ".", "x").code == 0


@pytest.mark.parametrize(
    "words, problem", [(("./x.sh",), "line ends of Windows"), (("python", "a.ipynb"), "notebook")]
)
def test_a_script_that_cannot_run_is_refused_before_it_is_sent(
    edt: Edt, service: CliService, code: Path, words: tuple[str, ...], problem: str
) -> None:
    (code / "x.sh").write_bytes(b"#!/bin/sh\r\n")
    (code / "a.ipynb").write_text("{}")
    ended = edt("submit", "--", *words)
    assert ended.code == 2
    assert problem in " ".join(ended.err.split())
    assert service.submitted() == []


def test_an_array_is_a_job_for_each_index_whose_code_is_sent_once(
    edt: Edt, service: CliService, code: Path
) -> None:
    ended = edt("submit", "--array", "1-3%2", "--", "python", "train.py")
    jobs = service.submitted()
    assert ended.out.split() == [job.id for job in jobs]
    assert [(job.array_index, job.array_limit) for job in jobs] == [(1, 2), (2, 2), (3, 2)]
    assert len({job.array_id for job in jobs}) == 1
    assert [bool(job.code_digest) for job in jobs] == [True, True, True]
    assert all((service.files(job.id).code / "train.py").is_file() for job in jobs)
    assert edt("submit", "--array", "1-3", "-f", "--", "python", "train.py").code == 2
