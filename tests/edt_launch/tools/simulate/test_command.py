import json

import pytest

from ended import Edt, Ended
from small import HEADER

ROWS = ("a,0,ada,4,1,8,4000", "b,100,bob,8,1,8,1000", "c,150,ada,2,1,2,300")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "some jobs.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


@pytest.fixture
def simulate(edt: Edt):
    def run(*arguments: object) -> Ended:
        return edt("simulate", *map(str, arguments))

    return run


@pytest.fixture
def no_replay(monkeypatch):
    """Nothing is replayed: what is wrong must be found before."""

    def replay(*_: object) -> None:
        raise AssertionError("replayed")

    monkeypatch.setattr("edt_launch.tools.simulate.command.replay", replay)


def test_the_table_says_what_was_assumed_and_compares_all_policies(file, simulate):
    result = simulate(file, "--gpus", "8", "--resize-cost", "3")
    assert result.code == 0, result.err
    for words in ("3 jobs on 8 GPUs", "resize cost 3 s", "EDT", "FIFO", "Tiresias-like", "mean JCT"):
        assert words in result.out
    assert (file.parent / "some jobs.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_the_figures_and_draws_only_when_asked(file, simulate):
    result = simulate(file, "--gpus", "8", "--policy", "edt", "--policy", "fifo", "--json")
    assert result.code == 0, result.err
    record = json.loads(result.out)
    assert list(record["policies"]) == ["EDT", "FIFO"]
    assert record["policies"]["EDT"]["jobs"] == 3
    assert record["timing"]["resize_cost"] == 5.0
    assert list(file.parent.iterdir()) == [file]
    assert simulate(file, "--gpus", "8", "--json", "--output", "there.png").code == 0
    assert (file.parent / "there.png").exists()


@pytest.mark.parametrize(
    "options, code, said",
    [
        (("nosuch.csv",), 2, "nosuch.csv"),
        (("some jobs.csv", "--gpus", "7"), 1, "job b requested 8 GPUs, and the cluster has 7"),
        (("some jobs.csv", "--gpus", "8", "--output", "none/there.png"), 2, "--output"),
        (("some jobs.csv", "--gpus", "8", "--resize-cost", "inf"), 2, "--resize-cost"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_replayed(
    file, simulate, no_replay, monkeypatch, options, code, said
):
    monkeypatch.setenv("COLUMNS", "200")
    plain, as_json = simulate(*options), simulate(*options, "--json")
    assert plain.code == as_json.code == code
    assert plain.err.startswith("edt: ")
    error = json.loads(as_json.out)["error"]
    assert said in plain.err
    assert said in error["detail"] + error["next"]
