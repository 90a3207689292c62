"""Jobs that run, and what they report, without a loop that runs them."""

import json

from edt_launch.service.bus import Topic
from edt_launch.service.jobs.states import State
from pages import Site

HOSTILE = '<img src=x onerror="alert(1)">\u202e\x1b[31m'


def a_running_job(site: Site, **fields: object) -> str:
    job: str = site.world.submit(site.world.ann, name="digits", max=4)["id"]
    site.world.go(job, State.STARTING, State.RUNNING)
    record(site, job, size=2, target=2, step=10, total_steps=100, throughput=1.0, **fields)
    return job


def record(site: Site, job: str, **observed: object) -> None:
    site.world.store.jobs.record({job: observed})
    site.world.bus.notify(Topic.JOBS)


def reported(step: int, **values: float) -> str:
    event = {
        "event": "progress",
        "time": 1e6 + step,
        "step": step,
        "size": 2,
        "epoch": None,
        "values": values,
    }
    return json.dumps(event) + "\n"
