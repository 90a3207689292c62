import json

import pytest
from typer.testing import CliRunner

from edt_launch.cli import app
from small import HEADER

RUNNER = CliRunner()
ROWS = ("a,0,ada,4,1,8,4000", "b,100,bob,8,1,8,1000", "c,150,ada,2,1,2,300")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "some jobs.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def simulate(*arguments):
    return RUNNER.invoke(app, ["simulate", *map(str, arguments)])


def test_the_table_says_what_was_assumed_and_compares_all_policies(file):
    result = simulate(file, "--gpus", "8", "--resize-cost", "3")
    assert result.exit_code == 0, result.output
    assert "3 jobs on 8 GPUs" in result.stdout
    assert "resize cost 3 s" in result.stdout
    assert "synthetic" in result.stdout
    for name in ("EDT", "FIFO", "strict priority", "Tiresias-like"):
        assert name in result.stdout
    for row in ("mean JCT", "p99 JCT", "makespan", "fairness rho", "share error", "resizes per job"):
        assert row in result.stdout
    assert (file.parent / "some jobs.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_the_figures_and_draws_only_when_asked(file):
    result = simulate(file, "--gpus", "8", "--policy", "edt", "--policy", "fifo", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert list(record["policies"]) == ["EDT", "FIFO"]
    assert record["policies"]["EDT"]["jobs"] == 3
    assert record["timing"]["resize_cost"] == 5.0
    assert list(file.parent.iterdir()) == [file]
    assert simulate(file, "--gpus", "8", "--json", "--output", "there.png").exit_code == 0
    assert (file.parent / "there.png").exists()


def test_rounds_have_the_published_timing_unless_told_otherwise(file):
    record = json.loads(simulate(file, "--gpus", "8", "--rounds", "--json").stdout)
    assert (record["timing"]["interval"], record["timing"]["resize_cost"]) == (60.0, 30.0)
    assert record["timing"]["coalesce"] is None
    told = json.loads(
        simulate(file, "--gpus", "8", "--rounds", "--decision-interval", "120", "--json").stdout
    )
    assert told["timing"]["interval"] == 120.0


def test_a_higher_resize_cost_costs_time(file):
    cheap, dear = (
        json.loads(simulate(file, "--gpus", 8, "--resize-cost", cost, "--policy", "edt", "--json").stdout)
        for cost in (0, 50)
    )
    assert cheap["policies"]["EDT"]["mean_jct"] < dear["policies"]["EDT"]["mean_jct"]


def test_jobs_may_share_the_cluster_directly(file):
    by_user, flat = (
        json.loads(simulate(file, "--gpus", 8, "--policy", "edt", "--json", *more).stdout)
        for more in ((), ("--flat",))
    )
    assert by_user["policies"] != flat["policies"]


def test_a_bad_trace_ends_with_code_2_and_one_line(file):
    file.write_text(HEADER + "\na,soon,ada,4,1,8,4000\n")
    result = simulate(file)
    assert result.exit_code == 2
    assert result.stderr.strip() == f"{file}, line 2: 'submit_time_s=soon': expected a number"


def test_a_cluster_that_is_too_small_ends_with_code_1(file):
    result = simulate(file, "--gpus", "4", "--policy", "fifo")
    assert result.exit_code == 1
    assert "requested 8" in result.stderr


def test_a_picture_that_cannot_be_written_ends_with_code_2(file):
    result = simulate(file, "--gpus", "8", "--policy", "fifo", "--output", "none/there.png")
    assert result.exit_code == 2
    assert "--output" in result.stderr
