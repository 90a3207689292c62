"""Projects and experiments on the command line, against the service's own application."""

import json
from pathlib import Path

import pytest

from cli_service import CliService
from ended import Edt
from lab import event


@pytest.fixture
def world(service: CliService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliService:
    service.log_on("ann")
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print()")
    monkeypatch.chdir(code)
    return service


def made(edt: Edt, *words: str) -> str:
    ended = edt(*words)
    assert ended.code == 0, ended.err
    return ended.out.strip()


@pytest.fixture
def first(edt: Edt, world: CliService) -> str:
    """An experiment with a training definition."""
    made(edt, "project", "create", "digits")
    experiment = made(edt, "experiment", "create", "first", "--project", "digits", "--metric", "accuracy")
    made(edt, "experiment", "add", "first", "net", "--max", "4", "--", "python", "train.py")
    return experiment


def test_a_story_from_a_project_to_a_comparison(edt: Edt, world: CliService, first: str) -> None:
    assert edt("experiment", "run", "first", "--dry-run").out == (
        "net starts at once with 1.\nNo other job would change now.\n"
    )
    jobs = [
        made(edt, "experiment", "run", "digits/first", "--", "python", "train.py", "--rate", rate)
        for rate in ("0.1", "0.2")
    ]
    for job, accuracy in zip(jobs, (0.75, 0.5), strict=True):
        world.files(job).output.events.write_text(event(accuracy=accuracy))
    head, newest, oldest, best, rate = edt("experiment", "compare", "first").out.splitlines()
    assert head.split()[-2:] == ["DEVICE-HOURS", "accuracy"]
    assert (newest.split()[-1], oldest.split()[-1]) == ("0.5", "0.75*")
    assert best == "* the best by accuracy (maximize)"
    assert rate == f"--rate: {jobs[1]} 0.2, {jobs[0]} 0.1"
    (only,) = json.loads(made(edt, "experiment", "compare", first, jobs[0], "--json"))["runs"]
    assert only["job"] == jobs[0]
    again = made(edt, "experiment", "run", "first", "--again", only["id"])
    assert world.store.jobs.get(again).command[-1] == "0.1"
    shown = edt("experiment", "show", "first").out.splitlines()
    assert shown[0] == "first of ann: 3 runs shown, data in the folder of data"
    assert shown[2].split()[:4] == ["net", shown[2].split()[1], "Elastic", "1-4"]
    assert "first" in edt("experiment", "ls", "--project", "digits").out
    refused = edt("experiment", "rm", "first")
    assert (refused.code != 0, "stop them first" in " ".join(refused.err.split())) == (True, True)


def test_members_are_listed_added_and_removed(edt: Edt, world: CliService) -> None:
    made(edt, "project", "create", "digits", "--description", "MNIST")
    assert edt("project", "members", "digits", "bob", "--role", "viewer").err == (
        "bob is a member of digits: viewer\n"
    )
    rows = [line.split() for line in edt("project", "members", "digits").out.splitlines()]
    assert rows == [["USER", "ROLE"], ["ann", "owner"], ["bob", "viewer"]]
    assert edt("project", "show", "digits").out.splitlines()[:2] == ["digits of ann", "MNIST"]
    assert json.loads(made(edt, "project", "ls", "--json"))["projects"][0]["role"] == "manager"
    assert edt("project", "members", "digits", "bob", "--remove", "--json").code == 0
    assert json.loads(made(edt, "project", "show", "digits", "--json"))["members"] == []
    assert "goes with --role or --remove" in edt("project", "members", "digits", "bob").err
    assert edt("project", "rm", "digits").err == "digits is deleted\n"
    assert edt("project", "ls").out == "no projects; make one with: edt project create NAME\n"
