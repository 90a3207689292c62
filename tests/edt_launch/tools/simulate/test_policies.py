import json

import pytest

from edt_launch.tools.simulate.figures import jct, rho
from edt_launch.tools.simulate.policies import Tiresias
from edt_launch.tools.simulate.replay import ROUNDS, machines, replay
from edt_launch.tools.simulate.trace import read
from small import TRACES


@pytest.mark.parametrize("name", ["tuned-1", "tuned-3"])
def test_tiresias_comes_within_three_percent_of_the_published_simulator(name):
    published = json.loads((TRACES / "pollux" / "baselines.json").read_text())["results"][f"tiresias/{name}"]
    hosts = machines(64, 4)
    outcome = replay(read(TRACES / "pollux" / f"{name}.csv"), hosts, Tiresias(hosts), ROUNDS)
    times = [jct(run) for run in outcome.runs]
    assert sum(times) / len(times) == pytest.approx(published["avg_jct"], rel=0.03)
    assert max(run.ended for run in outcome.runs) == pytest.approx(published["makespan"], rel=0.03)
    assert max(rho(outcome)) == pytest.approx(published["rho_max"], rel=0.3)
