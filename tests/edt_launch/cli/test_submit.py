import json
import os
from pathlib import Path

import pytest

from edt_launch.cli.commands import submit as command
from ended import Edt
from fake_service import FakeService, hang_up


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


def test_submit_prints_the_id_and_sends_the_code(edt: Edt, service: FakeService, code: Path) -> None:
    ended = edt("submit", "--min", "1", "--max", "4", "--", "python", "train.py", "--lr", "0.1")
    assert (ended.code, ended.out) == (0, "jcccccccc\n")
    assert "code: 3 files, 512 kB" in ended.err
    assert "edt why jcccccccc" in ended.err
    asked = service.asked[-1]
    assert json.loads(asked.parts()["spec"]) == {
        "name": "train", "command": ["python", "train.py", "--lr", "0.1"], "min": 1, "max": 4,
    }  # fmt: skip
    files = asked.files()
    assert files["lib/big.bin"] == (code / "lib" / "big.bin").read_bytes()
    assert set(files) == {".edtignore", "train.py", "lib", "lib/big.bin"}
    assert len(asked.headers["idempotency-key"]) == 32


def test_a_job_goes_on_from_a_checkpoint_of_another_one(
    edt: Edt, service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no script
    like = ("submit", "--code-of", "jaaaaaaaa", "--checkpoint")
    for named, name in (("newest", "step-20"), ("step-10", "step-10")):
        assert edt(*like, named, "--", "python", "train.py").code == 0
        spec = json.loads(service.asked[-1].parts()["spec"])
        assert (spec["code_of"], spec["checkpoint"]) == ("jaaaaaaaa", name)
    assert edt("submit", "--code-of", "jaaaaaaaa", "--", "python", "train.py").code == 0
    assert "checkpoint" not in json.loads(service.asked[-1].parts()["spec"])


def test_everything_can_be_said(
    edt: Edt, service: FakeService, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "m")
    words = (
        "--name n --priority 2 --weight 3 --allowed 4,1,2 --env A=b=c --env MINE --directory lib "
        "--checkpoint-interval 60 --max-restarts 2 --min 2 --max 4 --framework edtPyTorch --data-dir /d"
    )
    (code / "lib" / "run.sh").touch()
    assert edt("submit", *words.split(), "./run.sh").code == 0
    assert json.loads(service.asked[-1].parts()["spec"]) == {
        "name": "n", "command": ["./run.sh"], "min": 2, "max": 4, "priority": 2, "weight": 3.0,
        "allowed": [1, 2, 4], "environment": {"A": "b=c", "MINE": "m"}, "directory": "lib",
        "checkpoint_interval": 60.0, "max_restarts": 2, "framework": "edtPyTorch", "data_dir": "/d",
    }  # fmt: skip


def test_a_dry_run_shows_who_would_shrink_and_sends_no_code(
    edt: Edt, service: FakeService, code: Path
) -> None:
    ended = edt("submit", "--dry-run", "--", "python", "train.py")
    assert ended.out.splitlines()[0].split() == ["JOB", "NAME", "OWNER", "NOW", "THEN"]
    assert ended.out.splitlines()[3].split()[:5] == ["jaaaaaaaa", "train", "ada", "4", "2"]
    assert ended.out.splitlines()[4] == "  ↳ gives way"
    assert "nothing has been submitted" in ended.err
    assert service.asked[-1].query == {"dry_run": "1"}
    assert "code" not in service.asked[-1].parts()
    assert json.loads(edt("submit", "--dry-run", "--json", "--", "x").out)["changes"]


def test_a_broken_connection_is_tried_again_with_the_same_key(
    edt: Edt, service: FakeService, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PAUSES", (0.0, 0.0))
    answer = service.submit
    monkeypatch.setattr(service, "submit", lambda asked: service.broken.append(hang_up) or answer(asked))
    service.about = lambda asked: service.broken.append(hang_up) or {"user": "ada"}  # type: ignore[method-assign]
    ended = edt("submit", "--", "python", "train.py")
    assert ended.out == "jcccccccc\n"
    assert "trying again" in ended.err
    first, second = [asked for asked in service.asked if asked.method == "POST"]
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.files() == second.files()


def test_following_shows_the_output_and_ends_as_the_job_does(
    edt: Edt, service: FakeService, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.logs["jcccccccc"] = ["[0] hello"]
    answer = service.submit

    def fails(asked: object) -> object:
        answer(asked)  # type: ignore[arg-type]
        service.jobs["jcccccccc"].update(state="failed", failure="rank 0: oops", resizes=2)
        return service.jobs["jcccccccc"]

    monkeypatch.setattr(service, "submit", fails)
    ended = edt("submit", "--follow", "--", "python", "train.py")
    assert (ended.code, ended.out) == (1, "[0] hello\n")
    assert ended.err.splitlines()[-2:] == ["jcccccccc failed, 2 resizes", "rank 0: oops"]


@pytest.mark.parametrize("words", ["python /shared/train.py", "/shared/train.py", "bash tool --fast"])
def test_what_the_hosts_have_is_not_looked_for_here(
    edt: Edt, service: FakeService, code: Path, words: str
) -> None:
    assert edt("submit", "--", *words.split()).code == 0


@pytest.mark.parametrize("words", ["nosuch.py", "python nosuch.py", "python3 -u -X dev nosuch.py --lr 1"])
def test_a_script_that_is_not_in_the_code_is_refused_before_it_is_sent(
    edt: Edt, service: FakeService, code: Path, words: str
) -> None:
    ended = edt("submit", "--", *words.split())
    assert ended.code == 2
    assert "nosuch.py is not a file in" in " ".join(ended.err.split())
    assert [asked for asked in service.asked if asked.method == "POST"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("--min", "4", "--max", "2", "x"),
        ("--allowed", "1,x", "x"),
        ("--env", "1=2", "x"),
        ("--env", "NOT_SET_ANYWHERE", "x"),
        ("--path", "/a", "--code", ".", "x"),
        ("--code", "nowhere", "x"),
        (),
    ],
)
def test_mistakes_send_nothing(edt: Edt, service: FakeService, code: Path, words: tuple[str, ...]) -> None:
    ended = edt("submit", *words)
    assert ended.code == 2
    assert not [asked for asked in service.asked if asked.method == "POST"]


def test_nobody_sends_the_home_folder_by_mistake(
    edt: Edt, service: FakeService, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(code))
    ended = edt("submit", "x")
    assert ended.code == 2
    assert "is not a folder of code" in " ".join(ended.err.split())
    assert edt("submit", "--code", ".", "x").code == 0


def test_advice_on_what_is_not_sent_says_why(edt: Edt, service: FakeService, code: Path) -> None:
    (code / "runs").mkdir()
    (code / "runs" / "a.py").touch()
    (code.parent / "outside.py").touch()
    (code / "b.py").symlink_to("../outside.py")
    (code / "x.ckpt").rename(code / "c.py")
    (code / "d.pyc").touch()
    (code.parent / "elsewhere").mkdir()
    (code.parent / "elsewhere" / "e.py").touch()
    (code / "far").symlink_to("../elsewhere")
    os.mkfifo(code / "f.py")
    (code / ".edtignore").write_text("c.py\n")
    advice = {
        "runs/a.py": "a line !runs/ in",
        "b.py": "b.py is a link to elsewhere",
        "c.py": "take it out of .edtignore",
        "d.pyc": "a line !d.pyc in",
        "far/e.py": "far is a link to elsewhere",
        "f.py": "f.py is no file",
    }
    for script, expected in advice.items():
        ended = edt("submit", "--", "python", script)
        assert ended.code == 2
        assert expected in " ".join(ended.err.split())


@pytest.mark.parametrize(
    "words, problem", [(("./x.sh",), "line ends of Windows"), (("python", "a.ipynb"), "notebook")]
)
def test_a_script_that_cannot_run_is_refused_before_it_is_sent(
    edt: Edt, service: FakeService, code: Path, words: tuple[str, ...], problem: str
) -> None:
    (code / "x.sh").write_bytes(b"#!/bin/sh\r\n")
    (code / "a.ipynb").write_text("{}")
    ended = edt("submit", "--", *words)
    assert ended.code == 2
    assert problem in " ".join(ended.err.split())
    assert [asked for asked in service.asked if asked.method == "POST"] == []


def test_an_array_is_a_job_for_each_index_whose_code_is_sent_once(
    edt: Edt, service: FakeService, code: Path
) -> None:
    before = len(service.asked)
    ended = edt("submit", "--array", "1-3%2", "--", "python", "train.py")
    assert (ended.code, ended.out) == (0, "jcccccccc\n" * 3)
    posted = [asked for asked in service.asked[before:] if asked.method == "POST"]
    specs = [json.loads(asked.parts()["spec"]) for asked in posted]
    assert [(spec["array_index"], spec["array_limit"], spec.get("code_of")) for spec in specs] == [
        (1, 2, None),
        (2, 2, "jcccccccc"),
        (3, 2, "jcccccccc"),
    ]
    assert len({spec["array_id"] for spec in specs}) == 1
    assert edt("submit", "--array", "1-3", "-f", "--", "python", "train.py").code == 2
