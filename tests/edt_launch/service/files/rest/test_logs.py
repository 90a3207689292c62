import pytest

from edt_launch.service.jobs.states import State
from world import NOW, World


@pytest.fixture
def job(world: World) -> str:
    """An ended job with logs."""
    made: str = world.submit(world.ann)["id"]
    files = world.files(made)
    files.launcher_log.write_text("[0] hello\n[1] wörld\n")
    world.go(made, State.STARTING, State.SUCCEEDED)
    return made


def test_logs_of_all_ranks_or_one(world: World, job: str) -> None:
    answer = world.ann.get(f"/jobs/{job}/logs")
    assert answer.text == "[0] hello\n[1] wörld\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert world.ann.get(f"/jobs/{job}/logs?rank=1").text == "wörld\n"
    assert world.ann.get(f"/jobs/{job}/logs?rank=7").text == ""
    assert world.ann.get(f"/jobs/{job}/logs?tail=1").text == "[1] wörld\n"
    assert world.ann.get(f"/jobs/{job}/logs?rank=1&after=10").text == "wörld\n"
    assert world.ann.get(f"/jobs/{job}/logs?rank=1&after=11").text == ""
    assert world.ann.get(f"/jobs/{job}/logs?rank=0&tail=1").text == "hello\n"
    assert world.ann.get(f"/jobs/{job}/logs?after=10").text == "[1] wörld\n"
    assert world.ann.get(f"/jobs/{job}/logs?after=20&tail=2").text == "\n"
    assert world.ann.get(f"/jobs/{job}/logs?rank=../x").status_code == 422


def test_a_log_is_searched(world: World, job: str) -> None:
    log = world.files(job).launcher_log
    log.write_text("[0] ok\n[1] An Error (1)\n[0] no\n" + "[2] error " + "x" * 5000 + "\n")
    answer = world.ann.get(f"/jobs/{job}/logs/search", params={"text": "error"}).json()
    assert [hit["offset"] for hit in answer["hits"]] == [7, 31]
    assert [len(hit["text"]) for hit in answer["hits"]] == [16, 1000]
    assert answer["next"] is None
    assert world.ann.get(f"/jobs/{job}/logs/search?text=(1)").json()["hits"] == answer["hits"][:1]
    of_one = world.ann.get(f"/jobs/{job}/logs/search?text=error&rank=1").json()["hits"]
    assert of_one == [{"offset": 7, "text": "An Error (1)"}]
    assert world.ann.get(f"/jobs/{job}/logs/search?text=x&rank=7").json() == {"hits": [], "next": None}
    assert world.ann.get(f"/jobs/{job}/logs/search?text=").status_code == 422
    assert world.bob.get(f"/jobs/{job}/logs/search?text=error").status_code == 403


def test_lines_of_some_time_are_found(world: World, job: str) -> None:
    files = world.files(job)
    files.launcher_log.write_text("[0] one\n[0] two\n[0] three\n")
    ours, other = "launcher.log", "edt-launch.log"
    rows = f"100.0 8 {ours}\n150.0 99 {other}\n200.0 16 {ours}\n300.0 26 {ours}\n300.0 3"
    files.output.log_times.write_text(rows)

    def found(**query: str | float) -> list[str]:
        answer = world.ann.get(f"/jobs/{job}/logs/search", params=query).json()
        return [hit["text"].removeprefix("[0] ") for hit in answer["hits"]]

    assert found(since=0) == ["one", "two", "three"]
    assert found(since=100.5) == ["two", "three"]
    assert found(since=100.5, until=200) == ["two"]
    assert found(until=150) == ["one", "two"]
    assert found(since=100.5, text="thr") == ["three"]
    assert found(since=NOW) == []
