from dataclasses import replace

from edt_launch.tools.simulate.picture import NAMED, by_user, draw, jobs_at
from edt_launch.tools.simulate.replay import Outcome, Run, Timing, machines
from small import job

HOSTS = machines(8, 4)
RUNS = (
    Run(job("a", 0.0), 30.0, 1, 0, ((5.0, 2), (10.0, 4), (30.0, 0))),
    Run(job("b", 10.0, user="bob"), 20.0, 0, 0, ((12.0, 4), (20.0, 0))),
)
TIMES = [0.0, 5.0, 10.0, 12.0, 20.0, 29.0, 30.0]


def test_gpus_are_summed_by_user():
    assert by_user(RUNS, TIMES) == {"ada": [0, 2, 4, 4, 4, 4, 0], "bob": [0, 0, 0, 4, 0, 0, 0]}


def test_users_with_little_use_are_drawn_together():
    runs = [
        replace(RUNS[1], job=job(f"j{i}", 10.0, user=f"u{i:02d}"), sizes=((12.0, 1 + i), (20.0, 0)))
        for i in range(NAMED + 2)
    ]
    held = by_user(runs, [12.0])
    assert len(held) == NAMED + 1
    assert held["others"] == [1 + 2]


def test_jobs_run_or_wait():
    assert jobs_at(RUNS, TIMES) == ([0, 1, 1, 2, 1, 1, 0], [1, 0, 1, 0, 0, 0, 0])


def test_a_png_is_written(tmp_path):
    path = tmp_path / "a picture.png"
    draw(Outcome("some", HOSTS, Timing(), RUNS, 7), path, "some title")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]
