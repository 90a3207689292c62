import json

import pytest

from edt_launch.tools.simulate.figures import jct, rho
from edt_launch.tools.simulate.policies import FairShare, Tiresias
from edt_launch.tools.simulate.replay import ROUNDS, Timing, machines, replay
from edt_launch.tools.simulate.trace import read
from small import TRACES, job, trace

HOSTS = machines(8, 4)


def test_tiresias_puts_whoever_has_attained_much_behind_newcomers():
    jobs = trace(job("old", 0, 8, 8000), job("new", 500, 8, 80))
    policy = Tiresias(HOSTS, thresholds=(1000.0,))
    timing = Timing(interval=10.0, coalesce=0.0, resize_cost=0.0)
    old, new = replay(jobs, HOSTS, policy, timing).runs
    assert new.ended == 510
    assert (old.suspensions, old.ended) == (1, 1010)


@pytest.mark.parametrize("name", ["tuned-1", "tuned-3"])
def test_tiresias_comes_within_three_percent_of_the_published_simulator(name):
    published = json.loads((TRACES / "pollux" / "baselines.json").read_text())["results"][f"tiresias/{name}"]
    hosts = machines(64, 4)
    outcome = replay(read(TRACES / "pollux" / f"{name}.csv"), hosts, Tiresias(hosts), ROUNDS)
    times = [jct(run) for run in outcome.runs]
    assert sum(times) / len(times) == pytest.approx(published["avg_jct"], rel=0.03)
    assert max(run.ended for run in outcome.runs) == pytest.approx(published["makespan"], rel=0.03)
    assert max(rho(outcome)) == pytest.approx(published["rho_max"], rel=0.3)


TIMING = Timing(interval=5.0, coalesce=0.5, resize_cost=2.0)


def fair(jobs, hosts=HOSTS, **options):
    return FairShare(jobs, hosts, TIMING, **options)


def sizes_at(runs, time):
    return {run.job.id: next((n for at, n in reversed(run.sizes) if at <= time), 0) for run in runs}


def test_users_share_however_many_jobs_they_have_unless_jobs_share_directly():
    jobs = trace(*(job(f"a{i}", gpu_seconds=1500) for i in range(3)), job("b", gpu_seconds=1500, user="bob"))
    by_user = sizes_at(replay(jobs, HOSTS, fair(jobs), TIMING).runs, 100)
    flat = sizes_at(replay(jobs, HOSTS, fair(jobs, by_user=False), TIMING).runs, 100)
    assert by_user["b"] == 4
    assert flat["b"] == 2
