from types import SimpleNamespace

import pytest

from edt_launch.allocator.model import HostDevices
from edt_launch.tools.simulate.policies import Fifo
from edt_launch.tools.simulate.replay import Timing, machines, replay
from small import job, trace

EXACT = Timing(interval=1000.0, coalesce=0.5, resize_cost=5.0)
HOSTS = machines(8, 4)


def test_a_job_starts_half_a_second_after_its_submission_and_pays_for_it():
    (run,) = replay(trace(job("a", 10.0, gpus=4)), HOSTS, Fifo(HOSTS), EXACT).runs
    assert run.ended == pytest.approx(10 + 0.5 + 5 + 100 / 4)
    assert run.sizes == ((10.5, 4), (run.ended, 0))


def test_a_resized_job_stands_still_for_the_resize_cost():
    sizes = {0: "01", 20: "0123"}
    policy = SimpleNamespace(
        name="scripted",
        decide=lambda now, _: {"a": (HostDevices("node0000", tuple(sizes[20 * (now >= 20)])),)},
    )
    timing = Timing(interval=20.0, coalesce=0.0, resize_cost=5.0)
    (run,) = replay(trace(job("a")), HOSTS, policy, timing).runs
    done = (20 - 5) * 2
    assert run.ended == pytest.approx(20 + 5 + (100 - done) / 4)
    assert (run.resizes, run.suspensions) == (1, 0)
