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
